import Foundation

/// Two notifications byte for byte (in base64, so that no editor can touch them), and the header that OpenSSL computed
/// over those bytes with the key's text: an independent vector (S2).
enum SignedSamples {
    static let key = "44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056"

    static let authorizeSucceeded = Data(
        base64Encoded: """
            eyJldmVudCI6ImV4ZWN1dGlvbkFjdGlvbkNvbXBsZXRlZCIsInRpbWUiOiIyMDI2LTA5LTAxVDEwOjAwOjA1LjEyMzQ1Njc4OVoi\
            LCJ3b3Jrc3BhY2VJZCI6IjBmMmQ2YTEwLThhM2UtNGI0My05YTUzLTZhMWYwYzllN2IxMSIsImV2ZW50VHJpZ2dlciI6ImFwaSIs\
            ImRldGFpbHMiOnsiYWN0aW9uIjoiYXV0aG9yaXplIiwiYWN0aW9uSWQiOiIyZjliOGQ3MC0wMDAwLTRkMTAtODAwMC0wMDAwMDAw\
            MDAwMDkiLCJhY3Rpb25NZXRhIjp7fSwic3VjY2VzcyI6dHJ1ZSwiYW1vdW50Ijp7InZhbHVlIjoiNTcuNDkiLCJjdXJyZW5jeSI6\
            IkVVUiJ9LCJleGVjdXRpb24iOnsiaWQiOiI5YjFkMGE1Mi0yYTQxLTRmMGMtOGMwZS0zZjdmNWQwZTFjMDEiLCJ3b3JrZmxvd0Nv\
            ZGUiOiJwYXltZW50LWFjY2VwdGFuY2UiLCJtZXJjaGFudFJlZmVyZW5jZSI6Im9yZGVyXzUwMSIsImhvbGRlclJlZmVyZW5jZSI6\
            ImN1c3RfNzciLCJob2xkZXJJZCI6IjFjNWEwYzZlLTk3YTItNGE2Yi1iMWVhLTBkOGY2ZjBhN2MyMSIsIm1ldGEiOnsibm90ZSI6\
            ImNhZlx1MDBlOSBcLyDDvG7Dr2NvZGUiLCJ3ZWlnaHQiOjEuMH19LCJwYXltZW50Q29tcG9zaXRpb24iOlt7InN1Y2Nlc3MiOnRy\
            dWUsIm9wZXJhdGlvblR5cGUiOiJBdXRob3JpemUiLCJvcGVyYXRpb25SZXN1bHQiOiJTdWNjZXNzIiwiaW50ZWdyYXRpb25UeXBl\
            IjoiYXBpIiwicGF5bWVudE1ldGhvZENvZGUiOiJjYXJkIiwiY2FwdHVyZU1vZGUiOiJNYW51YWwiLCJwYXltZW50SWQiOiJjMGRl\
            MGE1Mi0yYTQxLTRmMGMtOGMwZS0zZjdmNWQwZTFjMDEiLCJwYXltZW50SW5zdHJ1bWVudElkIjoiNmY2YTNjMWUtNWYwZS00Zjdj\
            LTlmNTctMmI4YjVmMWQxYTAxIiwic3RvcmVJbnN0cnVtZW50Ijp0cnVlLCJhbW91bnQiOnsidmFsdWUiOiI1Ny40OSIsImN1cnJl\
            bmN5IjoiRVVSIn0sInByb3ZpZGVySWQiOiJhYTAwMDAwMC0wMDAwLTRkMTAtODAwMC0wMDAwMDAwMDAwMDkiLCJwcm92aWRlclJl\
            ZmVyZW5jZSI6InBzcF8xIn1dfX0=
            """)
    static let authorizeSucceededSignature = "fhiYxHjoRv9E8vtoD94/cLRQWEg5F0Zm7Kfq53YhE/I="

    static let authorizeFailed = Data(
        base64Encoded: """
            eyAiZXZlbnQiIDogImV4ZWN1dGlvbkFjdGlvbkNvbXBsZXRlZCIgLCAidGltZSI6IjIwMjYtMDktMDFUMTA6MDA6MDRaIiwid29y\
            a3NwYWNlSWQiOiIwZjJkNmExMC04YTNlLTRiNDMtOWE1My02YTFmMGM5ZTdiMTEiLAogImRldGFpbHMiOnsiYWN0aW9uIjoiYXV0\
            aG9yaXplIiwiYWN0aW9uSWQiOiIyZjliOGQ3MC0wMDAwLTRkMTAtODAwMC0wMDAwMDAwMDAwMDgiLCJzdWNjZXNzIjpmYWxzZSwi\
            YW1vdW50Ijp7InZhbHVlIjoiNTcuNDkiLCJjdXJyZW5jeSI6IkVVUiJ9LCJlcnJvcnMiOlt7ImlkIjoiNWI5ZjRkNmEtMTExMS00\
            ZTBlLTljMTEtYWEwMDAwMDAwMDAxIiwiY29kZSI6IndvcmtmbG93LmFjdGlvbi5mYWlsZWQiLCJkZXRhaWwiOiJhY3Rpb24gZmFp\
            bGVkIiwicmVhc29uIjp7ImNhdGVnb3J5IjoiSW5zdWZmaWNpZW50QmFsYW5jZSIsInJlc3VsdCI6Ikluc3VmZmljaWVudEJhbGFu\
            Y2UiLCJzb3VyY2UiOiJDdXN0b21lciJ9fV0sImV4ZWN1dGlvbiI6eyJpZCI6IjliMWQwYTUyLTJhNDEtNGYwYy04YzBlLTNmN2Y1\
            ZDBlMWMwMSIsIndvcmtmbG93Q29kZSI6InBheW1lbnQtYWNjZXB0YW5jZSIsIm1lcmNoYW50UmVmZXJlbmNlIjoib3JkZXJfNTAx\
            IiwiaG9sZGVyUmVmZXJlbmNlIjoiY3VzdF83NyJ9fX0K
            """)
    static let authorizeFailedSignature = "z/LvWdna2lFhKgmzAv23xV6BcgHEoONW9owO2qQul3c="
}
