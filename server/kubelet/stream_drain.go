package kubelet

import (
	"io"
	"net/http"
	"sync/atomic"
)

// keepReading makes ReverseProxy forward the remaining output of the runtime after the runtime has
// stopped accepting input. Without keepReading, ReverseProxy closes both directions when one
// direction fails. The output of a command that exits without reading all of its input would then
// be lost.
func keepReading(r *http.Response) error {
	if conn, ok := r.Body.(io.ReadWriteCloser); ok && r.StatusCode == http.StatusSwitchingProtocols {
		r.Body = &drainConn{ReadWriteCloser: conn}
	}
	return nil
}

// A drainConn is a connection whose Write discards data that cannot be written, until a Read has
// returned an error. It has no method CloseWrite, so that both directions are closed when the client
// disconnects, even if the command continues to run.
type drainConn struct {
	io.ReadWriteCloser
	hasReadFailed atomic.Bool
}

func (h *drainConn) Read(p []byte) (int, error) {
	n, err := h.ReadWriteCloser.Read(p)
	if err != nil {
		h.hasReadFailed.Store(true)
	}
	return n, err
}

func (h *drainConn) Write(p []byte) (int, error) {
	n, err := h.ReadWriteCloser.Write(p)
	if err != nil && !h.hasReadFailed.Load() {
		return len(p), nil
	}
	return n, err
}
