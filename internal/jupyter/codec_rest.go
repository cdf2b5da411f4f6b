package jupyter

import (
	"bytes"
	"encoding/json"
	"errors"
)

// Kernelspec is one kind of kernel.
type Kernelspec struct {
	Name string
	// DisplayName is for people, Language is "python" and the like.
	DisplayName, Language string
	// InterruptMode is "signal", "message" or "".
	InterruptMode string
	// Argv is the command line of the kernel process.
	Argv []string
}

// Kernelspecs are the kinds of kernels of a server.
type Kernelspecs struct {
	// Default is the name of the one that is used for an empty name.
	Default string
	Specs   map[string]Kernelspec
}

// KernelModel is what a server says of a kernel.
type KernelModel struct {
	ID, Name string
	// ExecutionState is "starting", "idle", "busy", "restarting" or "dead". It
	// stays "busy" for ever when nothing watches for the kernel's death.
	ExecutionState string
	// Connections counts the WebSockets of the kernel; it lags.
	Connections int
}

// CreateRequest says what kernel to create.
type CreateRequest struct {
	// Name is that of a kernelspec; "" means the server's default. An unknown
	// name is answered with status 500.
	Name string
	// Env is the kernel's environment. Gateways take only KERNEL_* and the
	// names that their operator allows, on top of PATH; Jupyter Server takes
	// none. It is always sent, even empty: a gateway serves a request without
	// it the environment of somebody else's.
	Env map[string]string
	// ID is the id that the kernel should get, a UUID; "" leaves it to the
	// server. Servers before jupyter_server 2.21 ignore it.
	ID string
}

// encodeCreate returns the body of POST /api/kernels.
func encodeCreate(r CreateRequest) ([]byte, error) {
	body := struct {
		Name string            `json:"name,omitempty"`
		Env  map[string]string `json:"env"`
		ID   string            `json:"kernel_id,omitempty"`
	}{r.Name, r.Env, r.ID}
	if body.Env == nil {
		body.Env = map[string]string{}
	}
	return json.Marshal(body)
}

// errNotJupyter stands for any body that is not what the API promises. The
// body itself is not quoted.
var errNotJupyter = errors.New("the answer is not one of a Jupyter server")

// decodeKernelspecs reads the answer of GET /api/kernelspecs.
func decodeKernelspecs(body []byte) (Kernelspecs, error) {
	var in struct {
		Default     string `json:"default"`
		Kernelspecs map[string]struct {
			Name string `json:"name"`
			Spec struct {
				Argv          []string `json:"argv"`
				DisplayName   string   `json:"display_name"`
				Language      string   `json:"language"`
				InterruptMode string   `json:"interrupt_mode"`
			} `json:"spec"`
		} `json:"kernelspecs"`
	}
	if json.Unmarshal(body, &in) != nil || in.Kernelspecs == nil {
		return Kernelspecs{}, errNotJupyter
	}
	out := Kernelspecs{Default: in.Default, Specs: make(map[string]Kernelspec, len(in.Kernelspecs))}
	for key, k := range in.Kernelspecs {
		out.Specs[key] = Kernelspec{
			Name:          k.Name,
			DisplayName:   k.Spec.DisplayName,
			Language:      k.Spec.Language,
			InterruptMode: k.Spec.InterruptMode,
			Argv:          k.Spec.Argv,
		}
	}
	return out, nil
}

// decodeKernelModel reads the answer of POST and GET of a kernel.
func decodeKernelModel(body []byte) (KernelModel, error) {
	var in struct {
		ID             string `json:"id"`
		Name           string `json:"name"`
		ExecutionState string `json:"execution_state"`
		Connections    int    `json:"connections"`
	}
	if json.Unmarshal(body, &in) != nil || in.ID == "" {
		return KernelModel{}, errNotJupyter
	}
	return KernelModel(in), nil
}

// refusalIn returns what a 403 is about when it is not about the token: the
// kernel limit of a gateway, or its list of users. Gateways have no other mark
// for either than their text.
func refusalIn(body []byte) error {
	switch {
	case bytes.Contains(body, []byte("Resource Limit")):
		return ErrKernelLimit
	case bytes.Contains(body, []byte("is not authorized to start kernel")):
		return ErrKernelUser
	}
	return nil
}
