package peers

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/gorilla/websocket"
)

// bareWebSocket talks to a kernel behind a Kernel Gateway of its own.
func bareWebSocket(tuned bool) func(context.Context, Options) (times, error) {
	return func(ctx context.Context, o Options) (t times, err error) {
		t = newTimes()
		g, err := startGateway(ctx, o)
		if err != nil {
			return t, err
		}
		defer func() { err = errors.Join(err, g.end()) }()
		for n := range o.Creates {
			begin := time.Now()
			k, err := g.kernel(ctx, tuned)
			if err != nil {
				return t, err
			}
			err = k.call()
			t.create.Record(time.Since(begin))
			for i := 0; n == 0 && err == nil && i < o.Calls; i++ {
				begin := time.Now()
				err = k.call()
				t.execute.Record(time.Since(begin))
			}
			if err = errors.Join(err, k.conn.Close()); err != nil {
				return t, err
			}
		}
		return t, nil
	}
}

// gateway is a jupyter_kernel_gateway process.
type gateway struct {
	cmd         *exec.Cmd
	addr, token string
	log         bytes.Buffer
}

// DefaultServer starts a Kernel Gateway as it comes, which is not one of
// Coppice's: it restarts dead kernels itself, after up to three seconds. end ends
// it and its kernels.
func DefaultServer(ctx context.Context, o Options) (url, token string, end func() error, err error) {
	g, err := startGateway(ctx, o.withDefaults())
	if err != nil {
		return "", "", nil, err
	}
	return "http://" + g.addr, g.token, g.end, nil
}

func startGateway(ctx context.Context, o Options) (*gateway, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("find a port: %w", err)
	}
	g := &gateway{addr: l.Addr().String(), token: rand.Text()}
	if err := l.Close(); err != nil {
		return nil, fmt.Errorf("find a port: %w", err)
	}
	_, port, err := net.SplitHostPort(g.addr)
	if err != nil {
		return nil, fmt.Errorf("find a port: %w", err)
	}
	g.cmd = exec.CommandContext(ctx, o.Python, "-m", "kernel_gateway", "--KernelGatewayApp.ip=127.0.0.1", "--KernelGatewayApp.port="+port,
		"--KernelGatewayApp.port_retries=0", "--log-level=ERROR", "--JupyterApp.answer_yes=True")
	g.cmd.Env = append(os.Environ(), "KG_AUTH_TOKEN="+g.token)
	g.cmd.Stdout, g.cmd.Stderr = &g.log, &g.log
	if err := g.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a Kernel Gateway: %w", err)
	}
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for end := time.Now().Add(time.Minute); ; {
		body, err := g.request(ctx, http.MethodGet, "/api", "")
		if err == nil && len(body) > 0 {
			return g, nil
		}
		if time.Now().After(end) || ctx.Err() != nil {
			_ = g.end() // it has not started: that is the error
			return nil, fmt.Errorf("the Kernel Gateway did not answer: %w: %s", err, tail(g.log.String()))
		}
		<-again.C
	}
}

func (g *gateway) request(ctx context.Context, method, path, body string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+g.addr+path, bytes.NewBufferString(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "token "+g.token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }() // it was read
	data, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode >= http.StatusMultipleChoices {
		err = fmt.Errorf("%s %s: %s", method, path, res.Status)
	}
	return data, err
}

// end asks the gateway to end, which ends its kernels. A KeyboardInterrupt would be dropped when
// it came while Python drops a weak reference.
func (g *gateway) end() error {
	http.DefaultClient.CloseIdleConnections()
	if err := g.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("end the Kernel Gateway: %w", err)
	}
	late := time.AfterFunc(2*time.Minute, func() { _ = g.cmd.Process.Kill() }) // Wait tells of it
	defer late.Stop()
	if _, exited := errors.AsType[*exec.ExitError](g.cmd.Wait()); exited && g.cmd.ProcessState.ExitCode() < 0 {
		return fmt.Errorf("the Kernel Gateway did not end when it was asked to: %s", tail(g.log.String()))
	}
	return nil
}

// jupyterKernel is a WebSocket to one kernel.
type jupyterKernel struct {
	conn    *websocket.Conn
	id      string // the server's
	session string
	n       int
}

func (g *gateway) kernel(ctx context.Context, tuned bool) (*jupyterKernel, error) {
	data, err := g.request(ctx, http.MethodPost, "/api/kernels", `{"name": "python3"}`)
	if err != nil {
		return nil, err
	}
	var made struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(data, &made); err != nil {
		return nil, fmt.Errorf("read the answer of the Kernel Gateway: %w", err)
	}
	dialer := websocket.Dialer{HandshakeTimeout: time.Minute}
	if tuned {
		dialer.NetDialContext = dialTuned
	}
	k := &jupyterKernel{id: made.ID, session: rand.Text()}
	conn, res, err := dialer.DialContext(ctx, "ws://"+g.addr+"/api/kernels/"+made.ID+"/channels?session_id="+k.session,
		http.Header{"Authorization": {"token " + g.token}})
	if err != nil {
		return nil, fmt.Errorf("dial the kernel: %w", err)
	}
	k.conn = conn
	return k, res.Body.Close()
}

// message is what is needed of a Jupyter message, in the JSON of the default
// WebSocket protocol.
type message struct {
	Header struct {
		Type string `json:"msg_type"`
	} `json:"header"`
	Parent struct {
		ID string `json:"msg_id"`
	} `json:"parent_header"`
	Content struct {
		Status string            `json:"status"`
		State  string            `json:"execution_state"`
		Data   map[string]string `json:"data"`
	} `json:"content"`
}

// call runs 1+1 and returns when the reply and the idle status have come.
func (k *jupyterKernel) call() error {
	k.n++
	id := fmt.Sprintf("%s-%d", k.session, k.n)
	request := map[string]any{
		"channel": "shell", "parent_header": map[string]any{}, "metadata": map[string]any{}, "buffers": []any{},
		"header":  map[string]any{"msg_id": id, "msg_type": "execute_request", "username": "", "session": k.session, "version": "5.3", "date": time.Now().UTC().Format(time.RFC3339Nano)},
		"content": map[string]any{"code": "1+1", "silent": false, "store_history": false, "user_expressions": map[string]any{}, "allow_stdin": false, "stop_on_error": false},
	}
	if err := k.conn.WriteJSON(request); err != nil {
		return fmt.Errorf("send to the kernel: %w", err)
	}
	for replied, idle, value := false, false, ""; ; {
		var m message
		if err := k.conn.ReadJSON(&m); err != nil {
			return fmt.Errorf("read from the kernel: %w", err)
		}
		if m.Parent.ID != id {
			continue
		}
		switch m.Header.Type {
		case "execute_result":
			value = m.Content.Data["text/plain"]
		case "execute_reply":
			if replied = true; m.Content.Status != "ok" {
				return fmt.Errorf("the reply says %s", m.Content.Status)
			}
		case "status":
			idle = m.Content.State == "idle"
		}
		if replied && idle {
			if value != "2" {
				return fmt.Errorf("the value is %q", value)
			}
			return nil
		}
	}
}
