// Package external starts the Jupyter servers that a host may be pointed at,
// as their makers ship them and with their default settings: Jupyter Kernel
// Gateway, Jupyter Server and Jupyter Enterprise Gateway, each with a token.
// Beside them is a proxy that cuts connections.
//
// A server's home and configuration are a folder of the test, so that nothing
// of the machine's user is read or changed; kernels are told so. Everything ends with the test.
package external
