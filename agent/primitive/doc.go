// Package primitive is the registry of runtime primitives: functions of the host
// that come in packs, with a contract that code can read before it calls them.
//
//	runtime.list_primitives(prefix="notes.")
//	runtime.get_primitive_spec("notes.add")
//	runtime.notes.add("buy milk")
//
// # Guarantees
//
//   - A primitive has a description, a schema for each parameter and at least one
//     best practice, or its pack is refused.
//   - Arguments are bound as Python binds them and checked against their schemas
//     before the handler sees them. What is wrong is a TypeError that lists the
//     parameters.
//   - A handler gets the backend of its pack; if it is missing, the error has its name
//     and that of the primitive.
//   - What a primitive recommends to do next travels beside the value, never in
//     the output.
//
// # Words
//
// A pack is a namespace of primitives with one backend, which is any object of
// the host. A backend that is an [Installer], a [Cloner], a [CallEnder], a
// [SessionEnder] or a [Closer] is notified of its life:
//
//	Install ──▶ in use ──ends of calls and sessions──▶ Close
//	               └──Fork──▶ a registry whose Cloners gave it backends of its own ──▶ Close
//
// A Registry may be used from any goroutine; handlers run in that of the call.
package primitive
