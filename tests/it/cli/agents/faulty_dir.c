/* A directory that fails on request: shows another directory, and behaves as its control file says.
 *
 * faulty_dir MOUNT_POINT BACKING_DIRECTORY CONTROL_FILE
 *
 * The first word of the control file is the behaviour: `ok`; `readonly` (nothing can be written: EROFS);
 * `full` (no data can be written and nothing created: ENOSPC); `slow N` (each call takes N milliseconds).
 * The link `.calls` shows how many calls there were: of names, and of data. */
#define FUSE_USE_VERSION 31
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int backing;
static const char *control;
/* Calls that look names up, open, create, rename or remove; and calls that read, write or sync data. */
static atomic_long names, data;

static const char *below(const char *path) { return path[1] ? path + 1 : "."; }
static int result(int done) { return done < 0 ? -errno : 0; }

/* Waits, and returns the error of a call, or 0. */
static int fault(int writes, atomic_long *counter) {
    char text[32] = "";
    atomic_fetch_add(counter, 1);
    int file = open(control, O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        if (read(file, text, sizeof text - 1) < 0) text[0] = 0;
        close(file);
    }
    if (!strncmp(text, "slow ", 5)) {
        long millis = atol(text + 5);
        struct timespec time = {millis / 1000, millis % 1000 * 1000000};
        nanosleep(&time, NULL);
    }
    if (writes && !strncmp(text, "readonly", 8)) return -EROFS;
    if (writes == 1 && !strncmp(text, "full", 4)) return -ENOSPC;
    return 0;
}

#define NAMES(writes) do { int e = fault(writes, &names); if (e) return e; } while (0)
#define DATA(writes) do { int e = fault(writes, &data); if (e) return e; } while (0)

static int do_getattr(const char *path, struct stat *stat, struct fuse_file_info *info) {
    if (info) { DATA(0); return result(fstat((int)info->fh, stat)); }
    if (!strcmp(path, "/.calls")) {
        memset(stat, 0, sizeof *stat);
        stat->st_mode = S_IFLNK | 0777;
        return 0;
    }
    NAMES(0);
    return result(fstatat(backing, below(path), stat, AT_SYMLINK_NOFOLLOW));
}
static int do_readlink(const char *path, char *text, size_t size) {
    if (!strcmp(path, "/.calls")) {
        snprintf(text, size, "%ld %ld", atomic_load(&names), atomic_load(&data));
        return 0;
    }
    NAMES(0);
    ssize_t length = readlinkat(backing, below(path), text, size - 1);
    if (length < 0) return -errno;
    text[length] = 0;
    return 0;
}
static int do_mkdir(const char *path, mode_t mode) {
    NAMES(1);
    return result(mkdirat(backing, below(path), mode));
}
static int do_unlink(const char *path) { NAMES(2); return result(unlinkat(backing, below(path), 0)); }
static int do_rmdir(const char *path) {
    NAMES(2);
    return result(unlinkat(backing, below(path), AT_REMOVEDIR));
}
static int do_symlink(const char *to, const char *path) {
    NAMES(1);
    return result(symlinkat(to, backing, below(path)));
}
static int do_rename(const char *from, const char *to, unsigned int flags) {
    NAMES(2);
    return result(renameat2(backing, below(from), backing, below(to), flags));
}
static int do_link(const char *from, const char *to) {
    NAMES(1);
    return result(linkat(backing, below(from), backing, below(to), 0));
}
static int do_chmod(const char *path, mode_t mode, struct fuse_file_info *info) {
    (void)info;
    NAMES(2);
    return result(fchmodat(backing, below(path), mode, 0));
}
static int do_chown(const char *path, uid_t user, gid_t group, struct fuse_file_info *info) {
    (void)info;
    NAMES(2);
    return result(fchownat(backing, below(path), user, group, AT_SYMLINK_NOFOLLOW));
}
static int do_truncate(const char *path, off_t size, struct fuse_file_info *info) {
    DATA(2);
    if (info) return result(ftruncate((int)info->fh, size));
    int file = openat(backing, below(path), O_WRONLY | O_CLOEXEC);
    if (file < 0) return -errno;
    int done = result(ftruncate(file, size));
    close(file);
    return done;
}
static int do_utimens(const char *path, const struct timespec times[2], struct fuse_file_info *info) {
    (void)info;
    NAMES(2);
    return result(utimensat(backing, below(path), times, AT_SYMLINK_NOFOLLOW));
}
static int open_file(const char *path, int flags, mode_t mode, struct fuse_file_info *info) {
    int file = openat(backing, below(path), (flags & ~O_APPEND) | O_CLOEXEC, mode);
    if (file < 0) return -errno;
    info->fh = (uint64_t)file;
    return 0;
}
static int do_open(const char *path, struct fuse_file_info *info) {
    NAMES((info->flags & O_ACCMODE) == O_RDONLY ? 0 : 2);
    return open_file(path, info->flags, 0, info);
}
static int do_create(const char *path, mode_t mode, struct fuse_file_info *info) {
    NAMES(1);
    return open_file(path, info->flags | O_CREAT, mode, info);
}
static int do_read(const char *path, char *bytes, size_t size, off_t at, struct fuse_file_info *info) {
    (void)path;
    DATA(0);
    ssize_t length = pread((int)info->fh, bytes, size, at);
    return length < 0 ? -errno : (int)length;
}
static int do_write(const char *path, const char *bytes, size_t size, off_t at,
                    struct fuse_file_info *info) {
    (void)path;
    DATA(1);
    ssize_t length = pwrite((int)info->fh, bytes, size, at);
    return length < 0 ? -errno : (int)length;
}
static int do_release(const char *path, struct fuse_file_info *info) {
    (void)path;
    close((int)info->fh);
    return 0;
}
static int do_fsync(const char *path, int only_data, struct fuse_file_info *info) {
    (void)path;
    DATA(0);
    return result(only_data ? fdatasync((int)info->fh) : fsync((int)info->fh));
}
static int do_readdir(const char *path, void *buffer, fuse_fill_dir_t fill, off_t at,
                      struct fuse_file_info *info, enum fuse_readdir_flags flags) {
    (void)at, (void)info, (void)flags;
    NAMES(0);
    int file = openat(backing, below(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = file < 0 ? NULL : fdopendir(file);
    if (!dir) return -errno;
    for (struct dirent *entry; (entry = readdir(dir));) fill(buffer, entry->d_name, NULL, 0, 0);
    closedir(dir);
    return 0;
}
static void *do_init(struct fuse_conn_info *connection, struct fuse_config *config) {
    (void)connection;
    /* Nothing else changes the files. What does not exist is asked for each time. */
    config->entry_timeout = config->attr_timeout = 10;
    config->negative_timeout = 0;
    config->use_ino = 1;
    config->hard_remove = 1;
    return NULL;
}

static const struct fuse_operations operations = {
    .init = do_init, .getattr = do_getattr, .readlink = do_readlink, .mkdir = do_mkdir,
    .unlink = do_unlink, .rmdir = do_rmdir, .symlink = do_symlink, .rename = do_rename,
    .link = do_link, .chmod = do_chmod, .chown = do_chown, .truncate = do_truncate,
    .utimens = do_utimens, .open = do_open, .create = do_create, .read = do_read,
    .write = do_write, .release = do_release, .fsync = do_fsync, .readdir = do_readdir,
};

int main(int count, char **words) {
    if (count != 4) return 2;
    backing = open(words[2], O_PATH | O_DIRECTORY | O_CLOEXEC);
    control = words[3];
    umask(0);
    char *fuse[] = {words[0], "-f", "-o", "default_permissions", words[1]};
    return backing < 0 ? 2 : fuse_main(5, fuse, &operations, NULL);
}
