// swift-tools-version: 6.1
import PackageDescription

// Arrows point one way: lockstep → Service → Store, Payrails → Lockstep → Basics.
// The C edges (Postgres, HTTPClient, HTTPServer, Crypto) know nothing of payments.
let package = Package(
    name: "lockstep",
    products: [
        .executable(name: "lockstep", targets: ["lockstep"]),
        .executable(name: "payrails-sandbox", targets: ["payrails-sandbox"]),
        .executable(name: "lockstep-bench", targets: ["lockstep-bench"]),
    ],
    targets: [
        // C: headers, and the few lines that variadic functions need.
        .target(name: "CPostgres", linkerSettings: [.linkedLibrary("pq")]),
        .target(name: "CCurl", linkerSettings: [.linkedLibrary("curl"), .linkedLibrary("crypto")]),
        .target(name: "CMicrohttpd", linkerSettings: [.linkedLibrary("microhttpd")]),
        .target(name: "CCrypto", linkerSettings: [.linkedLibrary("crypto")]),

        // Plain values that every room may use: JSON, headers, times, secrets.
        .target(name: "Basics"),

        // The edges.
        .target(name: "Crypto", dependencies: ["CCrypto"]),
        .target(name: "Postgres", dependencies: ["CPostgres"]),
        .target(name: "HTTPClient", dependencies: ["CCurl", "Basics"]),
        .target(name: "HTTPServer", dependencies: ["CMicrohttpd", "Basics"]),

        // The domain: pure Swift.
        .target(
            name: "Lockstep", dependencies: ["Basics"],
            resources: [
                .embedInCode("Money/currencies.csv"), .embedInCode("Gate/messages.json"),
                .embedInCode("Renewal/declines.json"), .embedInCode("Renewal/dunning.json"),
            ]),

        // What joins it to the world.
        .target(name: "Payrails", dependencies: ["Lockstep", "Basics", "Crypto", "HTTPClient"]),
        .target(
            name: "Store", dependencies: ["Lockstep", "Basics", "Crypto", "Postgres"],
            resources: [
                .embedInCode("sql/0001_core.sql"), .embedInCode("sql/0001_core.check.sql"),
                .embedInCode("sql/0002_event_delivery.sql"), .embedInCode("sql/0002_event_delivery.check.sql"),
                .embedInCode("sql/0003_retention.sql"), .embedInCode("sql/0003_retention.check.sql"),
                .embedInCode("sql/0004_charges.sql"), .embedInCode("sql/0004_charges.check.sql"),
                .embedInCode("sql/0005_subscriptions.sql"), .embedInCode("sql/0005_subscriptions.check.sql"),
                .embedInCode("sql/0006_discrepancies.sql"), .embedInCode("sql/0006_discrepancies.check.sql"),
                .embedInCode("sql/0007_disputes.sql"), .embedInCode("sql/0007_disputes.check.sql"),
                .embedInCode("sql/0008_notification_outcomes.sql"),
                .embedInCode("sql/0008_notification_outcomes.check.sql"),
                .embedInCode("sql/0009_renewals.sql"), .embedInCode("sql/0009_renewals.check.sql"),
                .embedInCode("sql/0010_undated_facts.sql"), .embedInCode("sql/0010_undated_facts.check.sql"),
                .embedInCode("sql/0011_expiring_instruments.sql"),
                .embedInCode("sql/0011_expiring_instruments.check.sql"),
                .embedInCode("sql/0012_bounds_currency.sql"), .embedInCode("sql/0012_bounds_currency.check.sql"),
            ]),
        .target(
            name: "Service",
            dependencies: ["Lockstep", "Basics", "Crypto", "Store", "Postgres", "Payrails", "HTTPServer", "HTTPClient"]),

        // The stand-in shares no code with the client beyond plain value types.
        .target(name: "PayrailsSandbox", dependencies: ["Basics", "Crypto", "Lockstep", "HTTPServer", "HTTPClient"]),

        .executableTarget(name: "lockstep", dependencies: ["Service", "Basics"]),
        .executableTarget(name: "payrails-sandbox", dependencies: ["PayrailsSandbox", "Basics"]),
        .executableTarget(
            name: "lockstep-bench",
            dependencies: [
                "Service", "Store", "Lockstep", "Postgres", "PayrailsSandbox", "HTTPClient", "Crypto", "Basics",
            ]),

        .target(
            name: "TestKit", dependencies: ["Basics", "Crypto", "Postgres", "HTTPClient", "HTTPServer"],
            path: "Tests/TestKit"),
        .testTarget(name: "BasicsTests", dependencies: ["Basics"]),
        .testTarget(name: "CryptoTests", dependencies: ["Crypto", "Basics", "TestKit"]),
        .testTarget(name: "PostgresTests", dependencies: ["Postgres", "TestKit"]),
        .testTarget(name: "HTTPClientTests", dependencies: ["HTTPClient", "TestKit"]),
        .testTarget(name: "HTTPServerTests", dependencies: ["HTTPServer", "TestKit"]),
        .testTarget(name: "LockstepTests", dependencies: ["Lockstep", "Basics", "TestKit"]),
        .testTarget(name: "PayrailsTests", dependencies: ["Payrails", "TestKit"]),
        .testTarget(name: "PayrailsSandboxTests", dependencies: ["PayrailsSandbox", "TestKit"]),
        .testTarget(name: "StoreTests", dependencies: ["Store", "TestKit"]),
        .testTarget(name: "ServiceTests", dependencies: ["Service", "PayrailsSandbox", "TestKit"]),
    ],
    swiftLanguageModes: [.v6]
)
