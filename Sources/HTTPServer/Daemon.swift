import CMicrohttpd
import Glibc

/// libmicrohttpd's daemon: starts it, and turns its callbacks into calls on `ServedConnection`.
///
/// Unchecked because the handle is only passed to library functions that may be called from any thread.
struct Daemon: @unchecked Sendable {
    let handle: OpaquePointer

    /// What a connection holds beside the request's head: the library's index of its fields, and the answer's head.
    /// The library clears all of it after each request, so all of it is resident.
    private static let memoryBesideHead = 4_096

    /// - Parameter core: must outlive the daemon; nothing here retains it.
    init?(core: ServerCore, socket: ListeningSocket) {
        let configuration = core.configuration
        var settings = lockstep_mhd_settings()
        settings.listening_socket = socket.descriptor
        // Room for those beyond the limit, who are told so.
        settings.connection_limit = UInt32(configuration.maximumConnections + 256)
        settings.threads = UInt32(configuration.threads)
        settings.connection_memory_bytes = configuration.maximumHeaderBytes + Self.memoryBesideHead
        settings.context = Unmanaged.passUnretained(core).toOpaque()
        settings.on_connection = { context, handle, slot, event in
            guard let context, let handle, let slot else { return }
            Daemon.connectionChanged(context, handle, slot, isNew: event == .CONNECTION_NOTIFY_STARTED)
        }
        settings.on_target = { _, target, handle in
            guard let handle, let target else { return nil }
            let context = lockstep_mhd_socket_context(handle)
            Daemon.connection(context)?.targetArrived(UnsafeRawBufferPointer(start: target, count: strlen(target)))
            return context
        }
        settings.on_request = { _, handle, _, method, _, upload, uploadSize, slot in
            guard let handle, let method, let uploadSize, let connection = Daemon.connection(slot?.pointee) else {
                return .NO
            }
            return Daemon.requestCalled(connection, handle, method, upload, uploadSize)
        }
        settings.on_completed = { _, _, slot, _ in Daemon.connection(slot?.pointee)?.requestEnded() }
        settings.on_refusal = { context, status in
            Daemon.connection(context)?.refuse(HTTPServerRefusal.Kind(libraryStatus: Int(status)), closesAtOnce: true)
        }
        guard let handle = lockstep_mhd_start(&settings) else { return nil }
        self.handle = handle
    }

    /// The library calls once with the head, then with each piece of the body, then once more when all is there.
    private static func requestCalled(
        _ connection: ServedConnection, _ handle: OpaquePointer, _ method: UnsafePointer<CChar>,
        _ upload: UnsafePointer<CChar>?, _ uploadSize: UnsafeMutablePointer<Int>
    ) -> MHD_Result {
        if let upload {
            let bytes = UnsafeRawBufferPointer(start: upload, count: uploadSize.pointee)
            uploadSize.pointee = 0
            return connection.bodyArrived(bytes)
        }
        if connection.headIsMissing {
            // The method is the head's first byte in the library's buffer.
            let head = UnsafeRawBufferPointer(start: method, count: lockstep_mhd_header_bytes(handle))
            let fieldCount = MHD_get_connection_values(handle, .HEADER_KIND, nil, nil)
            return connection.headArrived(head, fieldCount: Int(fieldCount))
        }
        return connection.requestArrived()
    }

    private static func connectionChanged(
        _ context: UnsafeMutableRawPointer, _ handle: OpaquePointer,
        _ slot: UnsafeMutablePointer<UnsafeMutableRawPointer?>, isNew: Bool
    ) {
        let core = Unmanaged<ServerCore>.fromOpaque(context).takeUnretainedValue()
        if isNew {
            let connection = ServedConnection(core: core, handle: handle)
            slot.pointee = Unmanaged.passRetained(connection).toOpaque()
            core.opened(connection)
        } else if let pointer = slot.pointee {
            slot.pointee = nil
            core.closed(Unmanaged<ServedConnection>.fromOpaque(pointer).takeRetainedValue())
        }
    }

    private static func connection(_ pointer: UnsafeMutableRawPointer?) -> ServedConnection? {
        pointer.map { Unmanaged<ServedConnection>.fromOpaque($0).takeUnretainedValue() }
    }
}
