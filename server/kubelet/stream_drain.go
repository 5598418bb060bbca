package kubelet

import (
	"io"
	"net/http"
	"sync/atomic"
)

// keepReading makes the proxy pass on the runtime's output until its end after the
// runtime has stopped accepting the client's input. Without it, ReverseProxy closes
// both directions when one fails, but a command that does not read its input has
// often exited by the time more of it arrives.
func keepReading(r *http.Response) error {
	if conn, ok := r.Body.(io.ReadWriteCloser); ok && r.StatusCode == http.StatusSwitchingProtocols {
		r.Body = &drainConn{ReadWriteCloser: conn}
	}
	return nil
}

// drainConn is a connection that discards data that cannot be written, until its
// reading end returns an error. It has no CloseWrite, so that a disconnecting
// client closes both directions even if the command continues to run.
type drainConn struct {
	io.ReadWriteCloser
	drained atomic.Bool
}

func (h *drainConn) Read(p []byte) (int, error) {
	n, err := h.ReadWriteCloser.Read(p)
	if err != nil {
		h.drained.Store(true)
	}
	return n, err
}

func (h *drainConn) Write(p []byte) (int, error) {
	n, err := h.ReadWriteCloser.Write(p)
	if err != nil && !h.drained.Load() {
		return len(p), nil
	}
	return n, err
}
