import PayrailsSandbox

await SandboxProgram.main(Array(CommandLine.arguments.dropFirst()))
