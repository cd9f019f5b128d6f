/* Makes file writes fail like a full disk or a broken device: LD_PRELOAD this and set FAIL_IO_SWITCH to a path.
 *
 * While the file at that path holds "ENOSPC", every write and preallocation of a regular file fails so; while it holds
 * "EIO", every sync does (and every write through an O_DSYNC descriptor). Sockets and pipes are left alone.
 * Built by the tests: cc -O2 -shared -fPIC -o fail_io.so fail_io.c -ldl
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#define REAL(name) ({ static __typeof__(&name) real; if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name); real; })

enum { HEALTHY, FULL, BROKEN };

static int mode(void) {
    const char *path = getenv("FAIL_IO_SWITCH");
    char text[8] = { 0 };
    int saved = errno;
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        if (read(fd, text, sizeof text - 1) < 0) text[0] = 0;
        close(fd);
    }
    errno = saved;
    return strncmp(text, "ENOSPC", 6) == 0 ? FULL : strncmp(text, "EIO", 3) == 0 ? BROKEN : HEALTHY;
}

static int regular(int fd) {
    struct stat stat;
    return fd > 2 && fstat(fd, &stat) == 0 && S_ISREG(stat.st_mode);
}

static int write_fails(int fd) {
    if (!regular(fd)) return 0;
    int now = mode();
    if (now == FULL) return ENOSPC;
    int flags = now == BROKEN ? fcntl(fd, F_GETFL) : 0;
    return flags > 0 && (flags & (O_DSYNC | O_SYNC)) ? EIO : 0;
}

#define FAIL_IF(code) do { int failed = (code); if (failed) { errno = failed; return -1; } } while (0)

ssize_t write(int fd, const void *data, size_t size) {
    FAIL_IF(write_fails(fd));
    return REAL(write)(fd, data, size);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    FAIL_IF(write_fails(fd));
    return REAL(writev)(fd, parts, count);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t offset) {
    FAIL_IF(write_fails(fd));
    return REAL(pwrite)(fd, data, size, offset);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t offset) {
    FAIL_IF(write_fails(fd));
    return REAL(pwrite64)(fd, data, size, offset);
}

int posix_fallocate(int fd, off_t offset, off_t size) {
    if (mode() == FULL) return ENOSPC;
    return REAL(posix_fallocate)(fd, offset, size);
}

int fallocate(int fd, int flags, off_t offset, off_t size) {
    FAIL_IF(mode() == FULL ? ENOSPC : 0);
    return REAL(fallocate)(fd, flags, offset, size);
}

int fsync(int fd) {
    FAIL_IF(mode() == BROKEN ? EIO : 0);
    return REAL(fsync)(fd);
}

int fdatasync(int fd) {
    FAIL_IF(mode() == BROKEN ? EIO : 0);
    return REAL(fdatasync)(fd);
}
