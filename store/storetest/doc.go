// Package storetest is the suite that every [store.Store] passes, wherever it keeps its
// records. It is for tests alone.
//
//	storetest.Run(t, func(t require.TestingT, dir string) storetest.Place { ... })
//
// # Guarantees
//
//   - It asks for what package store promises, and for nothing that a place may do in its
//     own way: where records are, how they are named, how long one takes.
//   - Each test has a place of its own, that nothing else uses.
package storetest
