// Package toolbox writes tools that do what a test wants of them: they start
// badly, crash, hang, leak, or answer nonsense. They are real processes of a
// real interpreter and need no package.
package toolbox
