import Basics
import CMicrohttpd
import Foundation

/// libmicrohttpd's response objects: `MHD_create_response_from_buffer`, `MHD_add_response_header`,
/// `MHD_queue_response` by its other name.
enum LibraryResponse {
    /// Queues a response that is `sendable`, on the thread that owns the connection.
    static func queue(_ response: HTTPServerResponse, on connection: OpaquePointer) -> MHD_Result {
        guard let object = make(response) else { return .NO }
        defer { MHD_destroy_response(object) }
        return lockstep_mhd_queue_response(connection, UInt32(response.status), object)
    }

    /// The library copies the body. The caller destroys the object.
    static func make(_ response: HTTPServerResponse) -> OpaquePointer? {
        let object = response.body.withUnsafeBytes { body in
            // The library only reads from the buffer, and takes a mutable pointer for the sake of its other modes.
            MHD_create_response_from_buffer(
                body.count, UnsafeMutableRawPointer(mutating: body.baseAddress), .RESPMEM_MUST_COPY)
        }
        guard let object else { return nil }
        for field in response.headers.fields where !field.value.isEmpty {
            guard MHD_add_response_header(object, field.name, field.value) == .YES else {
                MHD_destroy_response(object)
                return nil
            }
        }
        if response.closesConnection { _ = MHD_add_response_header(object, "Connection", "close") }
        return object
    }
}
