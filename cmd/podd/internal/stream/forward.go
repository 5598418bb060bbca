package stream

import (
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
)

// forwardCount is the number of connections that this process has forwarded. The number of a
// connection is its request ID, by which the server identifies the connection.
var forwardCount atomic.Uint64

// Forward copies data between a client and a port of the pod. It returns when the pod has closed
// the connection to its port, or when the client has disconnected. It closes client and returns
// the error that the runtime reports, or nil.
func (c *Conn) Forward(port uint16, client net.Conn) error {
	defer client.Close()
	headers := []string{v1.PortHeader, strconv.Itoa(int(port)), v1.PortForwardRequestIDHeader, strconv.FormatUint(forwardCount.Add(1), 10)}
	errorStream, err := c.openStream(v1.StreamTypeError, headers...)
	if err != nil {
		return err
	}
	errorStream.Close() // closed at once, because the client writes nothing to this stream
	defer c.spdy.RemoveStreams(errorStream)
	data, err := c.openStream(v1.StreamTypeData, headers...)
	if err != nil {
		return err
	}
	defer c.spdy.RemoveStreams(data)

	inputDone := make(chan struct{})
	go func() {
		defer close(inputDone)
		io.Copy(data, client) // the error is ignored, because it means that the pod does not read any more
		data.Close()
	}()
	outputDone := make(chan struct{})
	go func() {
		defer close(outputDone)
		if _, err := io.Copy(client, data); err != nil {
			data.Reset() // the client has disconnected
		}
	}()
	text, _ := io.ReadAll(io.LimitReader(errorStream, maxMessageBytes))
	if len(text) > 0 {
		data.Reset()
	}
	<-outputDone
	client.Close()
	<-inputDone
	if message := strings.TrimSpace(string(text)); message != "" {
		return errors.New(message)
	}
	return nil
}
