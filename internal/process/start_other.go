//go:build !linux && !darwin && !windows

package process

func startTime(int) (string, error) { return "", ErrUnsupported }
