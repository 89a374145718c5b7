package device

type noNetwork struct{}

func (noNetwork) Open(port uint16) (uint16, error) { return port, nil }
func (noNetwork) Close() error                     { return nil }
func (noNetwork) Send([]byte, *Endpoint) error     { return nil }
