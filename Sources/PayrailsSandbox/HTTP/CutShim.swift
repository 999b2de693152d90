import HTTPServer

// Until the server can cut a response short, closing after it is the nearest.
extension HTTPServerResponse {
    var cut: Int? {
        get { nil }
        set { closesConnection = newValue != nil }
    }
}
