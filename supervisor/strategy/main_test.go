package strategy_test

import "errors"

var errTest = errors.New("on purpose")
