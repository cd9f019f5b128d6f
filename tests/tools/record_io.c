/* Records what a program does to the files below a folder, or makes one of these operations fail: LD_PRELOAD this.
 *
 *   RECORD_IO_ROOT    the folder, without links in its path; nothing else is looked at
 *   RECORD_IO_TRACE   where the trace goes; appended to, so that it goes on when the program is started again
 *   RECORD_IO_AT      number (from 1) of the one operation that fails: a write, a sync, or a change of names or lengths
 *   RECORD_IO_NAME    only operations on open files with this in their path are counted then
 *   RECORD_IO_HOW     how it fails: KILL (before the operation is done), EIO, ENOSPC
 *
 * The trace is a sequence of records: a header (struct record), two paths, data. An operation on an open file has a record
 * when it begins (in capitals) and one with the same id when it has ended, so that a reader knows what a sync covers and what
 * was still under way. A change of names has a record N before it and one of its own kind after it, and no other change of names
 * comes between the two: after a kill at most one is in doubt. tests/lib/recorded.py reads it. Times are CLOCK_MONOTONIC.
 *
 * Built by the tests: cc -O2 -shared -fPIC -o record_io.so record_io.c -ldl -lpthread
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define REAL(name) ({ static __typeof__(&name) real; if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name); real; })

/* Little-endian machines only, as the tests' reader expects. */
struct record {
    uint64_t id, time_ns, inode, offset, length;
    uint32_t data;
    uint16_t path, other;
    char kind, synced, pad[6];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, names_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t ids, operations;

static int trace_fd(void) {
    static int fd = -2;
    if (fd == -2) {
        const char *path = getenv("RECORD_IO_TRACE");
        fd = path ? REAL(open64)(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
    }
    return fd;
}

static int below_root(const char *path) {
    const char *root = getenv("RECORD_IO_ROOT");
    size_t length = root ? strlen(root) : 0;
    return length && strncmp(path, root, length) == 0 && (path[length] == '/' || path[length] == 0);
}

/* The path of an open file or folder below the root; 0 if it is none. */
static int path_of(int fd, char *path, uint64_t *inode) {
    struct stat stat;
    char link[40];
    int saved = errno;
    if (fstat(fd, &stat) != 0 || !(S_ISREG(stat.st_mode) || S_ISDIR(stat.st_mode))) return errno = saved, 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    errno = saved;
    if (length < 0) return 0;
    path[length] = 0;
    *inode = stat.st_ino;
    return below_root(path);
}

static uint64_t note(char kind, uint64_t id, int synced, uint64_t inode, uint64_t offset, uint64_t length, const char *path,
                     const char *other, const struct iovec *parts, int count) {
    if (trace_fd() < 0) return 0;
    int saved = errno;
    struct record record = { .id = id, .inode = inode, .offset = offset, .length = length, .kind = kind, .synced = (char)synced };
    struct iovec all[64];
    int used = 0;
    record.path = (uint16_t)(path ? strlen(path) : 0);
    record.other = (uint16_t)(other ? strlen(other) : 0);
    all[used++] = (struct iovec){ &record, sizeof record };
    if (record.path) all[used++] = (struct iovec){ (void *)path, record.path };
    if (record.other) all[used++] = (struct iovec){ (void *)other, record.other };
    uint64_t left = length;
    ssize_t whole = (ssize_t)sizeof record + record.path + record.other;
    for (int n = 0; n < count && used < 64; n++) {
        size_t size = parts[n].iov_len < left ? parts[n].iov_len : left;
        all[used++] = (struct iovec){ parts[n].iov_base, size };
        record.data += (uint32_t)size;
        whole += (ssize_t)size;
        left -= size;
    }
    pthread_mutex_lock(&lock);
    if (!record.id) record.id = ++ids;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    record.time_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    /* A trace with a gap would be read as something else. */
    if (REAL(writev)(trace_fd(), all, used) != whole) abort();
    pthread_mutex_unlock(&lock);
    errno = saved;
    return record.id;
}

/* Counts an operation, on a file that is open or on names; the one that is to fail gives its error. */
static int failing(const char *file) {
    static int64_t at = -1;
    const char *name = getenv("RECORD_IO_NAME");
    if (name && (!file || !strstr(file, name))) return 0;
    if (at < 0) at = getenv("RECORD_IO_AT") ? atoll(getenv("RECORD_IO_AT")) : 0;
    if (__atomic_add_fetch(&operations, 1, __ATOMIC_SEQ_CST) != (uint64_t)at) return 0;
    const char *how = getenv("RECORD_IO_HOW");
    if (!how || strcmp(how, "KILL") == 0) {
        raise(SIGKILL);
        for (;;) pause();
    }
    return strcmp(how, "ENOSPC") == 0 ? ENOSPC : EIO;
}

static int synced_writes(int fd) {
    int flags = fcntl(fd, F_GETFL);
    return flags > 0 && (flags & (O_DSYNC | O_SYNC));
}

static ssize_t do_write(int fd, const struct iovec *parts, int count, int64_t offset, ssize_t (*call)(int, const void *, size_t, off64_t),
                        ssize_t (*vector)(int, const struct iovec *, int)) {
    char path[PATH_MAX];
    uint64_t inode, length = 0;
    int tracked = fd > 2 && path_of(fd, path, &inode);
    if (tracked) {
        int error = failing(path);
        if (error) return errno = error, -1;
        for (int n = 0; n < count; n++) length += parts[n].iov_len;
        if (offset < 0) offset = (fcntl(fd, F_GETFL) & O_APPEND) ? lseek64(fd, 0, SEEK_END) : lseek64(fd, 0, SEEK_CUR);
    }
    uint64_t id = tracked ? note('W', 0, 0, inode, (uint64_t)offset, length, path, NULL, parts, count) : 0;
    ssize_t done = vector ? vector(fd, parts, count) : call(fd, parts->iov_base, parts->iov_len, offset);
    if (tracked) note('w', id, synced_writes(fd), inode, (uint64_t)offset, done < 0 ? 0 : (uint64_t)done, NULL, NULL, NULL, 0);
    return done;
}

static ssize_t plain_write(int fd, const void *data, size_t size, off64_t offset) {
    (void)offset;
    return REAL(write)(fd, data, size);
}

static ssize_t placed_write(int fd, const void *data, size_t size, off64_t offset) { return REAL(pwrite64)(fd, data, size, offset); }

ssize_t write(int fd, const void *data, size_t size) {
    struct iovec part = { (void *)data, size };
    return do_write(fd, &part, 1, -1, plain_write, NULL);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t offset) {
    struct iovec part = { (void *)data, size };
    return do_write(fd, &part, 1, offset, placed_write, NULL);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t offset) {
    struct iovec part = { (void *)data, size };
    return do_write(fd, &part, 1, offset, placed_write, NULL);
}

ssize_t writev(int fd, const struct iovec *parts, int count) { return do_write(fd, parts, count, -1, NULL, REAL(writev)); }

/* An operation on an open file that is over at once or takes time: KIND when it begins, its small letter when it has ended. */
#define ON_FILE(kind, offset, length, call) do { \
    char path[PATH_MAX]; \
    uint64_t inode; \
    int tracked = path_of(fd, path, &inode); \
    int error = tracked ? failing(path) : 0; \
    if (error) return errno = error, -1; \
    uint64_t id = tracked ? note(kind, 0, 0, inode, (uint64_t)(offset), (uint64_t)(length), path, NULL, NULL, 0) : 0; \
    int done = (call); \
    if (tracked) note((char)(kind + 32), id, done == 0, inode, (uint64_t)(offset), (uint64_t)(length), NULL, NULL, NULL, 0); \
    return done; \
} while (0)

int fsync(int fd) { ON_FILE('S', 0, 0, REAL(fsync)(fd)); }
int fdatasync(int fd) { ON_FILE('S', 0, 0, REAL(fdatasync)(fd)); }
int ftruncate(int fd, off_t size) { ON_FILE('T', 0, size, REAL(ftruncate)(fd, size)); }
int ftruncate64(int fd, off64_t size) { ON_FILE('T', 0, size, REAL(ftruncate64)(fd, size)); }
int fallocate(int fd, int flags, off_t offset, off_t size) { ON_FILE('F', offset, flags ? 0 : size, REAL(fallocate)(fd, flags, offset, size)); }
int fallocate64(int fd, int flags, off64_t offset, off64_t size) { ON_FILE('F', offset, flags ? 0 : size, REAL(fallocate64)(fd, flags, offset, size)); }

#define ALLOCATING(name, type) \
int name(int fd, type offset, type size) { \
    char path[PATH_MAX]; \
    uint64_t inode; \
    int tracked = path_of(fd, path, &inode); \
    int error = tracked ? failing(path) : 0; \
    if (error) return error; \
    uint64_t id = tracked ? note('F', 0, 0, inode, (uint64_t)offset, (uint64_t)size, path, NULL, NULL, 0) : 0; \
    int done = REAL(name)(fd, offset, size); \
    if (tracked) note('f', id, done == 0, inode, (uint64_t)offset, (uint64_t)size, NULL, NULL, NULL, 0); \
    return done; \
}
ALLOCATING(posix_fallocate, off_t)
ALLOCATING(posix_fallocate64, off64_t)

/* A change of names; INODE is that of the file or folder afterwards, where it is looked at. */
#define ON_NAMES(kind, path, other, inode, call) do { \
    int tracked = below_root(path); \
    int error = tracked ? failing(NULL) : 0; \
    if (error) return errno = error, -1; \
    if (!tracked) return (call); \
    pthread_mutex_lock(&names_lock); \
    note('N', 0, 0, 0, kind, 0, path, other, NULL, 0); \
    int done = (call), saved = errno; \
    note(kind, 0, done == 0, done == 0 ? (inode) : 0, 0, 0, path, other, NULL, 0); \
    pthread_mutex_unlock(&names_lock); \
    return errno = saved, done; \
} while (0)

static uint64_t inode_of(const char *path) {
    struct stat stat;
    return lstat(path, &stat) == 0 ? stat.st_ino : 0;
}

/* The path of a name in an open folder, as remove_dir_all uses them. */
static const char *at(int folder, const char *name, char *path) {
    uint64_t inode;
    if (name[0] == '/' || folder == AT_FDCWD || !path_of(folder, path, &inode)) return name;
    size_t length = strlen(path);
    snprintf(path + length, PATH_MAX - length, "/%s", name);
    return path;
}

int rename(const char *from, const char *to) { ON_NAMES('R', from, to, 0, REAL(rename)(from, to)); }
int unlink(const char *path) { ON_NAMES('U', path, NULL, 0, REAL(unlink)(path)); }
int rmdir(const char *path) { ON_NAMES('U', path, NULL, 0, REAL(rmdir)(path)); }
int mkdir(const char *path, mode_t mode) { ON_NAMES('M', path, NULL, inode_of(path), REAL(mkdir)(path, mode)); }
int link(const char *from, const char *to) { ON_NAMES('L', from, to, 0, REAL(link)(from, to)); }

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags) {
    char one[PATH_MAX], two[PATH_MAX];
    ON_NAMES('L', at(from_folder, from, one), at(to_folder, to, two), 0, REAL(linkat)(from_folder, from, to_folder, to, flags));
}

int renameat(int from_folder, const char *from, int to_folder, const char *to) {
    char one[PATH_MAX], two[PATH_MAX];
    ON_NAMES('R', at(from_folder, from, one), at(to_folder, to, two), 0, REAL(renameat)(from_folder, from, to_folder, to));
}

int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags) {
    char one[PATH_MAX], two[PATH_MAX];
    ON_NAMES('R', at(from_folder, from, one), at(to_folder, to, two), 0, REAL(renameat2)(from_folder, from, to_folder, to, flags));
}

int unlinkat(int folder, const char *name, int flags) {
    char path[PATH_MAX];
    ON_NAMES('U', at(folder, name, path), NULL, 0, REAL(unlinkat)(folder, name, flags));
}

int mkdirat(int folder, const char *name, mode_t mode) {
    char path[PATH_MAX];
    const char *whole = at(folder, name, path);
    ON_NAMES('M', whole, NULL, inode_of(whole), REAL(mkdirat)(folder, name, mode));
}

/* Opens a file that may be made or emptied by it; a file without a name is noted by what the kernel calls it. */
#define ON_OPEN(path, call) do { \
    int error = failing(NULL); \
    if (error) return errno = error, -1; \
    pthread_mutex_lock(&names_lock); \
    note('N', 0, (flags & O_TRUNC) != 0, 0, 'O', 0, path, NULL, NULL, 0); \
    int fd = (call), saved = errno; \
    char found[PATH_MAX]; \
    uint64_t inode; \
    if (fd >= 0 && path_of(fd, found, &inode)) note('O', 0, (flags & O_TRUNC) != 0, inode, 0, 0, found, NULL, NULL, 0); \
    pthread_mutex_unlock(&names_lock); \
    return errno = saved, fd; \
} while (0)

#define MODE(flags) ({ mode_t mode = 0; if (flags & (O_CREAT | O_TMPFILE)) { va_list more; va_start(more, flags); mode = va_arg(more, mode_t); va_end(more); } mode; })

#define OPENING(name) \
int name(const char *path, int flags, ...) { \
    mode_t mode = MODE(flags); \
    if (!(flags & (O_CREAT | O_TRUNC)) || !below_root(path)) return REAL(name)(path, flags, mode); \
    ON_OPEN(path, REAL(name)(path, flags, mode)); \
}
OPENING(open)
OPENING(open64)

#define OPENING_AT(name) \
int name(int folder, const char *file, int flags, ...) { \
    mode_t mode = MODE(flags); \
    char path[PATH_MAX]; \
    const char *whole = at(folder, file, path); \
    if (!(flags & (O_CREAT | O_TRUNC)) || !below_root(whole)) return REAL(name)(folder, file, flags, mode); \
    ON_OPEN(whole, REAL(name)(folder, file, flags, mode)); \
}
OPENING_AT(openat)
OPENING_AT(openat64)
