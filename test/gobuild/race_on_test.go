//go:build race

package gobuild_test

const raced = true
