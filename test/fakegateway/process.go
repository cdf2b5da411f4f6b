package fakegateway

// Interrupt is what SIGINT does, whoever sends it.
func (k *Kernel) Interrupt() {
	k.mu.Lock()
	cell := k.cell
	if cell == nil {
		k.stray++
	}
	k.mu.Unlock()
	if cell != nil {
		cell.interruptOnce.Do(func() { close(cell.interrupted) })
	}
}

// receive sorts what a client sent. It is called by the connection's reader.
func (k *Kernel) receive(from *client, m Message) {
	typ := m.field("msg_type")
	k.mu.Lock()
	k.types[typ]++
	mute := k.mute || k.ended
	k.mu.Unlock()
	if mute {
		return
	}
	switch m.Channel {
	case "shell":
		select {
		case k.shell <- request{from, m}:
		case <-k.gone:
		}
		k.mu.Lock()
		close(k.wake)
		k.wake = make(chan struct{})
		k.mu.Unlock()
	case "control":
		switch typ {
		case "kernel_info_request":
			k.info(from, m)
		case "coppice_repeat_request":
			if k.server.opts.Recover {
				k.recover(from, m)
			}
		case "interrupt_request":
			k.Interrupt()
			k.deliver(from.session, Message{Channel: "control", Header: k.header("interrupt_reply"), Parent: m.Header, Content: map[string]any{"status": "ok"}})
		}
	case "stdin":
		value, _ := m.Content["value"].(string)
		id, _ := m.Parent["msg_id"].(string)
		k.mu.Lock()
		answer := k.inputs[id]
		delete(k.inputs, id)
		k.mu.Unlock()
		if answer != nil {
			answer <- value
		}
	}
}

// info answers a kernel_info_request on the channel it came on.
func (k *Kernel) info(from *client, m Message) {
	k.mu.Lock()
	lose := k.loseIdle > 0
	if lose {
		k.loseIdle--
	}
	k.mu.Unlock()
	status := func(state string) {
		if lose {
			k.header("status") // it was sent, and dropped
			return
		}
		k.Publish("status", m.Header, map[string]any{"execution_state": state})
	}
	status("busy")
	k.deliver(from.session, Message{Channel: m.Channel, Header: k.header("kernel_info_reply"), Parent: m.Header, Content: map[string]any{
		"status": "ok", "protocol_version": "5.3", "implementation": "fake", "implementation_version": "1",
		"language_info": map[string]any{"name": "python", "version": "3.11.7"}, "banner": "fake",
		"supported_features": []string{"debugger"},
	}})
	status("idle")
}

// shellLoop is the kernel's main thread.
func (k *Kernel) shellLoop() {
	for {
		select {
		case <-k.gone:
			return
		case r := <-k.shell:
			switch r.field("msg_type") {
			case "kernel_info_request":
				if k.pending.Swap(false) { // it ends the request, which gets no reply
					k.Publish("status", r.Header, map[string]any{"execution_state": "idle"})
					continue
				}
				k.info(r.from, r.Message)
			case "execute_request":
				k.execute(r)
			}
		}
	}
}

// execute runs one cell.
func (k *Kernel) execute(r request) {
	c := newCell(k, r)
	k.mu.Lock()
	k.cell = c
	k.state = "busy"
	k.mu.Unlock()
	if k.pending.Swap(false) {
		k.Interrupt()
	}
	k.server.opts.Execute(c)
	k.mu.Lock()
	if k.cell == c {
		k.cell = nil
	}
	if !k.ended {
		k.state = "idle"
	}
	k.mu.Unlock()
}
