// A conversation in Swift: chat MODEL QUESTION
//
// Written without a Mac, and not compiled yet. With `module Akunu { header "akunu.h" link "akunu_c" export * }` as
// module.modulemap beside akunu.h:
//
//     swiftc -I include -L target/release chat.swift -o chat
import Akunu
import Foundation

struct AkunuError: Error, CustomStringConvertible {
    let description = String(cString: akunu_last_error())
}

func check(_ status: akunu_status) throws {
    guard status == AKUNU_STATUS_OK else { throw AkunuError() }
}

final class Model {
    fileprivate var handle: OpaquePointer?

    init(path: String) throws { try check(akunu_model_open(path, nil, &handle)) }

    deinit { akunu_model_free(handle) }
}

final class Chat {
    private var handle: OpaquePointer?

    init(_ model: Model) throws { try check(akunu_chat_new(model.handle, nil, &handle)) }

    deinit { akunu_chat_free(handle) }

    /// The answer as it comes. Ending the loop early ends the answer.
    func ask(_ question: String) -> AsyncThrowingStream<String, Error> {
        AsyncThrowingStream { continuation in
            continuation.onTermination = { _ in akunu_chat_cancel(self.handle) }
            Thread.detachNewThread {
                // The box lives until the call has returned, and the callback runs only before that.
                let box = Unmanaged.passRetained(Box(continuation))
                defer { box.release() }
                let status = akunu_chat_ask(self.handle, question, { text, _, context in
                    let box = Unmanaged<Box>.fromOpaque(context!).takeUnretainedValue()
                    box.continuation.yield(String(cString: text!))
                    return 0
                }, box.toOpaque(), nil)
                status == AKUNU_STATUS_OK ? continuation.finish() : continuation.finish(throwing: AkunuError())
            }
        }
    }

    private final class Box {
        let continuation: AsyncThrowingStream<String, Error>.Continuation
        init(_ continuation: AsyncThrowingStream<String, Error>.Continuation) { self.continuation = continuation }
    }
}

@main
struct Main {
    static func main() async throws {
        let chat = try Chat(Model(path: CommandLine.arguments[1]))
        for try await piece in chat.ask(CommandLine.arguments[2]) {
            print(piece, terminator: "")
            fflush(stdout)
        }
        print()
    }
}
