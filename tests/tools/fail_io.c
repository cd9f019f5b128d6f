/* Makes file operations fail like a full disk or a broken device: LD_PRELOAD this and set FAIL_IO_SWITCH to a path.
 *
 * The file at that path says what fails, at any time: an error (ENOSPC, EIO), then perhaps an operation, then perhaps a
 * part of the file's path:
 *
 *   ENOSPC                        every write and preallocation of a regular file
 *   EIO                           every sync (and every write through an O_DSYNC descriptor, before it is done)
 *   ENOSPC write binlog.0         writes of such files
 *   ENOSPC short binlog.0         a write does half of its bytes, the next one fails
 *   EIO sync binlog.0             syncs; a write through an O_DSYNC descriptor is done and then fails
 *   EIO open|rename|unlink|truncate|fallocate NAME     open: only opening that may create; rename: the new name
 *   EINVAL direct NAME            opening with O_DIRECT, as on a file system that does not know it
 *
 * Nothing fails while the file is empty or missing. Sockets and pipes are left alone.
 * Built by the tests: cc -O2 -shared -fPIC -o fail_io.so fail_io.c -ldl
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#define REAL(name) ({ static __typeof__(&name) real; if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name); real; })
#define FAIL_IF(code) do { int failed = (code); if (failed) { errno = failed; return -1; } } while (0)

enum { ANY, WRITE = 1, SHORT = 2, SYNC = 4, OPEN = 8, RENAME = 16, UNLINK = 32, TRUNCATE = 64, FALLOCATE = 128, DIRECT = 256 };

struct rule { int error; int operation; char part[128]; };

static int operation_of(const char *name) {
    static const char *const names[] = { "write", "short", "sync", "open", "rename", "unlink", "truncate", "fallocate", "direct" };
    for (int n = 0; n < 9; n++) if (strcmp(name, names[n]) == 0) return 1 << n;
    return ANY;
}

static struct rule rule(void) {
    struct rule rule = { 0, ANY, "" };
    const char *path = getenv("FAIL_IO_SWITCH");
    char text[200] = { 0 }, error[16] = { 0 }, operation[16] = { 0 };
    int saved = errno;
    int fd = path ? REAL(open)(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        if (read(fd, text, sizeof text - 1) < 0) text[0] = 0;
        close(fd);
    }
    errno = saved;
    if (sscanf(text, "%15s %15s %127s", error, operation, rule.part) < 1) return rule;
    rule.error = strcmp(error, "ENOSPC") == 0 ? ENOSPC : strcmp(error, "EIO") == 0 ? EIO : strcmp(error, "EINVAL") == 0 ? EINVAL : 0;
    rule.operation = operation_of(operation);
    return rule;
}

static int path_matches(const struct rule *rule, const char *path) {
    return rule->part[0] == 0 || strstr(path, rule->part) != NULL;
}

static int file_matches(const struct rule *rule, int fd) {
    struct stat stat;
    char link[64], path[4096] = { 0 };
    if (fd <= 2 || fstat(fd, &stat) != 0 || !S_ISREG(stat.st_mode)) return 0;
    if (rule->part[0] == 0) return 1;
    int saved = errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (readlink(link, path, sizeof path - 1) < 0) path[0] = 0;
    errno = saved;
    return path_matches(rule, path);
}

static int write_through(int fd) {
    int flags = fcntl(fd, F_GETFL);
    return flags > 0 && (flags & (O_DSYNC | O_SYNC));
}

/* An error before the write is done; sets *size to less for a short write, and *after to an error for when it is done. */
static int before_write(int fd, size_t *size, int *after) {
    static int fails_next;
    struct rule now = rule();
    *after = 0;
    if (!now.error || !file_matches(&now, fd)) return 0;
    switch (now.operation) {
    case ANY: return now.error == ENOSPC || write_through(fd) ? now.error : 0;
    case WRITE: return now.error;
    case SHORT:
        if (__atomic_exchange_n(&fails_next, 1, __ATOMIC_RELAXED) || *size < 2) return now.error;
        *size /= 2;
        return 0;
    case SYNC: *after = write_through(fd) ? now.error : 0; return 0;
    default: return 0;
    }
}

#define WRITING(call) do { \
    int after; \
    FAIL_IF(before_write(fd, &size, &after)); \
    ssize_t done = (call); \
    FAIL_IF(after); \
    return done; \
} while (0)

ssize_t write(int fd, const void *data, size_t size) { WRITING(REAL(write)(fd, data, size)); }
ssize_t pwrite(int fd, const void *data, size_t size, off_t offset) { WRITING(REAL(pwrite)(fd, data, size, offset)); }
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t offset) { WRITING(REAL(pwrite64)(fd, data, size, offset)); }

ssize_t writev(int fd, const struct iovec *parts, int count) {
    size_t size = 1;
    WRITING(REAL(writev)(fd, parts, count));
}

/* The error of an operation on an open file. */
static int fails(int operation, int fd) {
    struct rule now = rule();
    int meant = now.operation == operation
        || (now.operation == ANY && operation == SYNC && now.error == EIO)
        || (now.operation == ANY && operation == FALLOCATE && now.error == ENOSPC);
    return meant && now.error && file_matches(&now, fd) ? now.error : 0;
}

static int path_fails(int operation, const char *path) {
    struct rule now = rule();
    return now.error && now.operation == operation && path_matches(&now, path) ? now.error : 0;
}

int posix_fallocate(int fd, off_t offset, off_t size) {
    int failed = fails(FALLOCATE, fd);
    return failed ? failed : REAL(posix_fallocate)(fd, offset, size);
}

int fallocate(int fd, int flags, off_t offset, off_t size) {
    FAIL_IF(fails(FALLOCATE, fd));
    return REAL(fallocate)(fd, flags, offset, size);
}

int fallocate64(int fd, int flags, off64_t offset, off64_t size) {
    FAIL_IF(fails(FALLOCATE, fd));
    return REAL(fallocate64)(fd, flags, offset, size);
}

int ftruncate64(int fd, off64_t size) {
    FAIL_IF(fails(TRUNCATE, fd));
    return REAL(ftruncate64)(fd, size);
}

int fsync(int fd) {
    FAIL_IF(fails(SYNC, fd));
    return REAL(fsync)(fd);
}

int fdatasync(int fd) {
    FAIL_IF(fails(SYNC, fd));
    return REAL(fdatasync)(fd);
}

int rename(const char *from, const char *to) {
    FAIL_IF(path_fails(RENAME, to));
    return REAL(rename)(from, to);
}

int unlink(const char *path) {
    FAIL_IF(path_fails(UNLINK, path));
    return REAL(unlink)(path);
}

#define OPENING(name) \
int name(const char *path, int flags, ...) { \
    mode_t mode = 0; \
    if (flags & (O_CREAT | O_TMPFILE)) { \
        va_list more; \
        va_start(more, flags); \
        mode = va_arg(more, mode_t); \
        va_end(more); \
    } \
    if (flags & O_CREAT) FAIL_IF(path_fails(OPEN, path)); \
    if (flags & O_DIRECT) FAIL_IF(path_fails(DIRECT, path)); \
    return REAL(name)(path, flags, mode); \
}
OPENING(open)
OPENING(open64)
