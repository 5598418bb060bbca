package kubelet

import (
	"io"
	"net/http"
	"sync/atomic"
)

// keepReading makes ReverseProxy forward the rest of the runtime's output after the runtime has
// stopped accepting input. ReverseProxy would otherwise close both directions when one direction
// fails. As a result, the output of a command that exits without reading all of its input would be
// lost.
func keepReading(r *http.Response) error {
	if conn, ok := r.Body.(io.ReadWriteCloser); ok && r.StatusCode == http.StatusSwitchingProtocols {
		r.Body = &drainConn{ReadWriteCloser: conn}
	}
	return nil
}

// A drainConn is a connection that discards data that cannot be written, until a read returns an
// error. It has no method CloseWrite, so that both directions are closed when the client
// disconnects, even if the command continues to run.
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
