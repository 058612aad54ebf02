/* SPDX-License-Identifier: MIT */
/* loaded.c - the libraries that are loaded in the process: see loaded.h. */
#define _GNU_SOURCE
#include "load/loaded.h"

#include "base/text.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <string.h>

static pthread_mutex_t looking = PTHREAD_MUTEX_INITIALIZER;

static void before_fork(void)
{
    pthread_mutex_lock(&looking);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&looking);
}

static void watch_forks(void)
{
    pthread_atfork(before_fork, after_fork, after_fork);
}

int loaded_each(int (*see)(struct dl_phdr_info *info, size_t size, void *user), void *user)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&looking);
    const int answer = dl_iterate_phdr(see, user);
    pthread_mutex_unlock(&looking);
    return answer;
}

/* The name that a loaded object gives itself (DT_SONAME), or NULL. If the system's loader has not
 * relocated the dynamic section, its addresses are relative to the object. */
static const char *own_name(const struct dl_phdr_info *info)
{
    const ElfW(Dyn) *row = NULL;
    const ElfW(Addr) base = info->dlpi_addr;
    ElfW(Addr) names = 0, name = 0;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            row = (const ElfW(Dyn) *)(base + info->dlpi_phdr[i].p_vaddr);
    for (; row && row->d_tag != DT_NULL; row++)
        if (row->d_tag == DT_STRTAB)
            names = row->d_un.d_ptr < base ? base + row->d_un.d_ptr : row->d_un.d_ptr;
        else if (row->d_tag == DT_SONAME)
            name = row->d_un.d_val;
    return names && name ? (const char *)(names + name) : NULL;
}

static int has_name(struct dl_phdr_info *info, size_t size, void *name)
{
    const char *file = strrchr(info->dlpi_name, '/');
    (void)size;
    if (strcmp(file ? file + 1 : info->dlpi_name, name) == 0)
        return 1;
    const char *own = own_name(info);
    return own && strcmp(own, name) == 0;
}

/* Calls dlopen() only for a library that is loaded. For any other library, RTLD_NOLOAD searches all
 * of the system's directories, which takes longer than the whole rest of the search. */
bool loaded_find(const char *name, char **path)
{
    struct link_map *map;
    *path = NULL;
    if (!loaded_each(has_name, (void *)(uintptr_t)name))
        return false;
    void *library = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
    if (library && dlinfo(library, RTLD_DI_LINKMAP, &map) == 0) {
        /* Another thread may rename the library meanwhile: load/library.c. */
        const char *now = __atomic_load_n(&map->l_name, __ATOMIC_ACQUIRE);
        if (*now == '/')
            *path = strdup(now);
    }
    if (library)
        dlclose(library);
    else
        dlerror(); /* discards the message */
    return library != NULL;
}

struct list {
    const char *before;
    char **texts;
    size_t count, most;
};

static int add_to_list(struct dl_phdr_info *info, size_t size, void *user)
{
    struct list *list = user;
    const char *path = info->dlpi_name, *own = own_name(info);
    (void)size;
    if (*path != '/')
        return 0;
    const char *name = own && !strchr(own, '/') ? own : strrchr(path, '/') + 1;
    if ((list->texts[list->count] = text_format("%s%s%s", list->before, name, path)))
        list->count++;
    return list->count == list->most;
}

size_t loaded_list(const char *before, char **texts, size_t most)
{
    struct list list = { .before = before, .texts = texts, .most = most };
    if (most)
        loaded_each(add_to_list, &list);
    return list.count;
}
