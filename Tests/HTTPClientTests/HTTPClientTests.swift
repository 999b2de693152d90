import Testing

/// One after the other: most of these tests measure time, or start a process, and a small machine that does all at once
/// measures nothing but itself.
@Suite("HTTP client", .serialized)
enum HTTPClientTests {}
