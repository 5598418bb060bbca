package kubelet

import (
	"io"
	"net/http"
	"sync/atomic"
)

// hearOut has what the runtime says passed on to its end when it takes no more of
// the client's input: of two ways a proxy ends both when one fails, and a command
// that reads none of its input has often ended when more of that comes.
func hearOut(r *http.Response) error {
	if conn, ok := r.Body.(io.ReadWriteCloser); ok && r.StatusCode == http.StatusSwitchingProtocols {
		r.Body = &hearer{ReadWriteCloser: conn}
	}
	return nil
}

// hearer is a connection that swallows what cannot be written, until all is read. It has
// no CloseWrite: a client that has gone ends both ways, though a runtime may go on with
// the command.
type hearer struct {
	io.ReadWriteCloser
	heard atomic.Bool
}

func (h *hearer) Read(p []byte) (int, error) {
	n, err := h.ReadWriteCloser.Read(p)
	if err != nil {
		h.heard.Store(true)
	}
	return n, err
}

func (h *hearer) Write(p []byte) (int, error) {
	n, err := h.ReadWriteCloser.Write(p)
	if err != nil && !h.heard.Load() {
		return len(p), nil
	}
	return n, err
}
