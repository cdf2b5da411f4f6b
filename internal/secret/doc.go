// Package secret decides what must not be shown: variables whose names say that their
// values are secret, and values that carry a secret whatever their name is. Kernels
// are not given such variables, tools and the audit log do not show them.
//
// # Guarantees
//
//   - There is one rule. What is kept from a kernel is masked in a log, too.
//   - It errs on the side of caution: a setting that is held back is missed, a secret
//     that gets through is a secret no more.
//   - Every function is pure, linear in its input, and may be called from any
//     goroutine.
package secret
