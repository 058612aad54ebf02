/* SPDX-License-Identifier: MIT */
/* say.c - sends log lines to the library as packets. If there is no room, the line is lost: the
 * plugin must not wait for the application. */
#define _POSIX_C_SOURCE 200809L
#include "server.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum { EARLY = 32 }; /* lines that are kept until the library listens */

static struct wire_packet early[EARLY];
static int early_count;
static bool begun;

static void send_packet(struct server *server, const struct wire_packet *packet)
{
    if (send(SERVER_SOCKET, packet, sizeof *packet, MSG_NOSIGNAL | MSG_DONTWAIT) > 0)
        atomic_fetch_add(&server->wire->said, 1);
}

/* The log calls it with its lock held. */
void say_line(void *of, int32_t level, const char *text)
{
    struct wire_packet packet = { .level = (uint32_t)level };
    snprintf(packet.text, sizeof packet.text, "%s", text);
    if (begun)
        send_packet(of, &packet);
    else if (early_count < EARLY)
        early[early_count++] = packet;
}

void say_begin(struct server *server)
{
    pthread_mutex_lock(&server->subject.context.log.lock);
    for (int i = 0; i < early_count && !begun; i++)
        send_packet(server, &early[i]);
    begun = true;
    pthread_mutex_unlock(&server->subject.context.log.lock);
}
