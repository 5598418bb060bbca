package plugins

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// connectTime is how long a plugin may take to say what it is.
const connectTime = 10 * time.Second

// Bounds on what a plugin says of itself.
const (
	longestName  = 253
	longestPath  = 4096
	mostVersions = 16
	mostSaid     = 64 << 10
)

// Dial returns a lazy connection to a plugin's socket.
func Dial(socket string, more ...grpc.DialOption) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+socket, append([]grpc.DialOption{
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		}),
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority("localhost"), grpc.WithNoProxy(),
		grpc.WithDisableServiceConfig(), grpc.WithDisableRetry(), grpc.WithIdleTimeout(0),
		grpc.WithReadBufferSize(8 << 10), grpc.WithWriteBufferSize(8 << 10),
	}, more...)...)
}

// admit asks the plugin at a socket what it is, registers it, and tells it so. One
// of another kind is told nothing: that it is not registered ends it, and whoever
// started it does so again.
func (w *Watcher) admit(ctx context.Context, socket string) (Registration, error) {
	conn, err := Dial(socket, grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(mostSaid)))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	limited, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	api := v1.NewRegistrationClient(conn)
	info, err := api.GetInfo(limited, &v1.InfoRequest{}, grpc.WaitForReady(true))
	if err != nil {
		return nil, fmt.Errorf("asking what it is: %w", Plain(err))
	}
	kind := w.Kinds[info.GetType()]
	if kind == nil {
		return nil, w.other(info.GetType())
	}
	var r Registration
	p, err := introduced(info, socket)
	if err == nil {
		r, err = kind.Register(ctx, p)
	}
	told := &v1.RegistrationStatus{PluginRegistered: err == nil}
	if err != nil {
		told.Error = err.Error()
	}
	limited, cancel = context.WithTimeout(ctx, connectTime)
	defer cancel()
	if _, failed := api.NotifyRegistrationStatus(limited, told); failed != nil && err == nil {
		w.Log.Warn("a plugin was not told that it is registered", "socket", socket, "err", Plain(failed))
	}
	return r, err
}

func introduced(info *v1.PluginInfo, socket string) (Plugin, error) {
	p := Plugin{Name: info.GetName(), Endpoint: info.GetEndpoint(), Versions: info.GetSupportedVersions()}
	if p.Endpoint == "" {
		p.Endpoint = socket
	}
	switch {
	case p.Name == "" || len(p.Name) > longestName:
		return p, fmt.Errorf("its name has %d characters; a name has 1 to %d", len(p.Name), longestName)
	case !filepath.IsAbs(p.Endpoint) || len(p.Endpoint) > longestPath || strings.ContainsRune(p.Endpoint, 0):
		return p, errors.New("its endpoint is not an absolute path")
	case len(p.Versions) > mostVersions:
		return p, fmt.Errorf("it speaks %d versions; at most %d are looked at", len(p.Versions), mostVersions)
	}
	p.Endpoint = filepath.Clean(p.Endpoint)
	return p, nil
}

// textLimit is how much of a plugin's own words is repeated.
const textLimit = 512

// Plain is what a plugin says without gRPC's words about it.
func Plain(err error) error { return errors.New(Bounded(status.Convert(err).Message())) }

// Bounded is a text of a plugin, no more of it than is fit to be shown.
func Bounded(text string) string {
	text = strings.ToValidUTF8(text, "?")
	if len(text) > textLimit {
		text = strings.ToValidUTF8(text[:textLimit], "") + "…"
	}
	return text
}
