/* SPDX-License-Identifier: MIT */
/* link.h - the connection with a worker process: a socket, which also carries descriptors of files,
 * and memory that both share. */
#ifndef WORKER_LINK_H
#define WORKER_LINK_H

#include "base/process.h"

/* Like process_start(), with a socket instead of the pipe, and with a pidfd. Each answer is a
 * packet: process_read() takes one at a time. */
int link_start(struct process *process, char *const arguments[]);

/* Sends a file to the helper, which takes it with link_receive_file(). False if that would
 * block or fails. */
bool link_send_file(const struct process *process, int file);
/* In the helper: waits for a file and returns its descriptor. Returns -1 if no file will come or,
 * with EMFILE in errno, if this process has no descriptor left. */
int link_receive_file(int socket);
/* Ends the connection, as the end of this process would. */
void link_hang_up(const struct process *process);
/* Resumes the process if somebody has stopped it. Works only with a pidfd. */
void link_resume(const struct process *process);

/* Allocates zeroed memory that can be shared with the helper through *file. Its size cannot change,
 * so no access fails. Returns NULL and sets errno if memory, descriptors or addresses run out, or
 * if it exceeds RLIMIT_FSIZE. */
void *link_share(size_t bytes, int *file);
/* In the helper: maps `bytes` bytes of the file; NULL if the file is smaller. */
void *link_map(int file, size_t bytes);

#endif
