/* SPDX-License-Identifier: MIT */
/* events.c - the thread for calls that wait for an event, so that no other call waits for them. */
#include "server.h"

#include "base/message.h"

static void serve(struct server *server, const struct wire_record *record)
{
    const struct wire_event *arguments = (const void *)(record + 1);
    void *event = objects_find(&server->events, arguments->event);
    plugin_message_clear();
    const int32_t status = event ? server->table->event_sync(event) : server_fail("event");
    line_answer(server, WIRE_EVENTS, record, status, NULL, 0);
    line_done(server, WIRE_EVENTS, record->units);
}

static void *run(void *of)
{
    for (;;)
        serve(of, line_take(of, WIRE_EVENTS));
    return NULL;
}

bool events_start(struct server *server)
{
    pthread_t thread;
    return !pthread_create(&thread, NULL, run, server) && !pthread_detach(thread);
}
