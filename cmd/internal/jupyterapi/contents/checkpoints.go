package contents

import (
	"errors"
	"io/fs"
	"net/http"
	"path"

	"github.com/coppice-run/coppice/workspace/files"
)

const (
	// checkpointFolder is where checkpoints are, beside what they are of; as in Jupyter.
	checkpointFolder = ".ipynb_checkpoints"
	// checkpointID is that of the one checkpoint that a file may have.
	checkpointID = "checkpoint"
)

// checkpointOf is where the checkpoint of a file is.
func checkpointOf(at string) string {
	dir, name := path.Split(at)
	ext := path.Ext(name)
	return path.Join(dir, checkpointFolder, name[:len(name)-len(ext)]+"-checkpoint"+ext)
}

// kept is a checkpoint for clients.
type kept struct {
	ID       string `json:"id"`
	Modified string `json:"last_modified"`
}

// checkpoints lists those of a file, or makes one.
func checkpoints(method string, r request) (answer, error) {
	switch method {
	case http.MethodGet:
		list := []kept{}
		i, err := r.folder.Stat(checkpointOf(r.at))
		if err == nil {
			list = append(list, kept{checkpointID, stamp(i.Modified)})
		} else if !errors.Is(err, fs.ErrNotExist) {
			return answer{}, err
		}
		return answer{status: http.StatusOK, body: list}, nil
	case http.MethodPost:
		i, err := duplicate(r, r.at, checkpointOf(r.at))
		if err != nil {
			return answer{}, err
		}
		return answer{status: http.StatusCreated, location: r.at + "/checkpoints/" + checkpointID, body: kept{checkpointID, stamp(i.Modified)}}, nil
	default:
		return answer{}, &problem{http.StatusMethodNotAllowed, "Method Not Allowed", ""}
	}
}

// checkpoint goes back to one, or removes it.
func checkpoint(method string, r request, id string) (answer, error) {
	if id != checkpointID {
		return answer{}, &problem{http.StatusNotFound, "Checkpoint does not exist: " + quoted(r.at+"@"+id), ""}
	}
	var err error
	switch method {
	case http.MethodPost:
		_, err = duplicate(r, checkpointOf(r.at), r.at)
	case http.MethodDelete:
		err = r.folder.Remove(checkpointOf(r.at), false)
	default:
		err = &problem{http.StatusMethodNotAllowed, "Method Not Allowed", ""}
	}
	return answer{status: http.StatusNoContent}, err
}

// duplicate makes one file what another is.
func duplicate(r request, from, to string) (files.Info, error) {
	in, err := r.folder.Open(from)
	if err != nil {
		return files.Info{}, err
	}
	defer func() { _ = in.Close() }() // it was only read
	return r.folder.Write(r.Context(), to, in, files.WriteOptions{Mode: in.Info().Mode})
}

// moveCheckpoint has the checkpoint of a file go with it. That of a directory is in it.
func moveCheckpoint(r request, to string) {
	from := checkpointOf(r.at)
	if _, err := r.folder.Stat(from); err != nil {
		return
	}
	at := checkpointOf(to)
	if _, err := r.folder.MakeDir(path.Dir(at), 0); err == nil {
		_, _ = r.folder.Move(from, at, files.MoveOptions{Replace: true}) // the file has moved, and its checkpoint is less
	}
}
