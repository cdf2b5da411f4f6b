// Package supervisor is supervision trees on Hollywood actors. It knows nothing
// of Python: it runs [Behaviour] values as children of [Shell] values, and lets
// pure [Strategy] values decide what becomes of them.
package supervisor
