import Glibc

/// How many sockets and files this process may have open (`RLIMIT_NOFILE`).
public enum FileDescriptorLimit {
    /// Raises the soft limit to the hard one. Each connection takes one descriptor, and the usual soft limit of 1,024
    /// is less than one busy server needs.
    /// - Returns: the limit that holds now.
    @discardableResult
    public static func raise() -> Int {
        var limit = rlimit()
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        guard getrlimit(resource, &limit) == 0 else { return 0 }
        if limit.rlim_cur < limit.rlim_max {
            var raised = limit
            raised.rlim_cur = limit.rlim_max
            if setrlimit(resource, &raised) == 0 { limit = raised }
        }
        return Int(clamping: limit.rlim_cur)
    }
}
