/* SPDX-License-Identifier: MIT */
/* list.h - doubly linked lists of structs with members `next` and `prev`. `head` points to the
 * pointer to the first item. */
#ifndef HW_BASE_LIST_H
#define HW_BASE_LIST_H

#define list_add(head, item)                                                               \
    do {                                                                                   \
        (item)->prev = NULL;                                                               \
        (item)->next = *(head);                                                            \
        if ((item)->next)                                                                  \
            (item)->next->prev = (item);                                                   \
        *(head) = (item);                                                                  \
    } while (0)

#define list_remove(head, item)                                                            \
    do {                                                                                   \
        *((item)->prev ? &(item)->prev->next : (head)) = (item)->next;                     \
        if ((item)->next)                                                                  \
            (item)->next->prev = (item)->prev;                                             \
    } while (0)

#endif
