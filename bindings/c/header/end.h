
/** The version of this header, for minder_check_version(). */
#define MINDER_VERSION \
    ((uint32_t)(MINDER_VERSION_MAJOR << 16 | MINDER_VERSION_MINOR << 8 | MINDER_VERSION_PATCH))

#ifdef __cplusplus
} /* extern "C" */

/** Returns a structure with its size, and zero in all other members. */
template <typename T> inline T minder_initial() {
    T structure{};
    structure.size = sizeof(T);
    return structure;
}

#define MINDER_INIT(type) minder_initial<type>()
#else
/** The initial value of a structure: its size, and zero in all other members. */
#define MINDER_INIT(type) { .size = sizeof(type) }

/** For an argument `how`: SIGTERM, and a kill after `time` nanoseconds. */
#define MINDER_GRACEFUL(time) \
    (&(const minder_termination){ .size = sizeof(minder_termination), .grace = (time) })
#endif

#endif /* MINDER_H */
