package jupyter_test

func stopRealGateway() {}
