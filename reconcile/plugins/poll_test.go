package plugins

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"podd/runtime/runtimetest/child"
)

// inUserNamespace runs the test in a child process as root of a user namespace with a limited
// number of inotify instances. In the child process, inUserNamespace returns true. In the parent
// process, it waits until the child has exited, reports a failure of the child, and returns false.
func inUserNamespace(t *testing.T, instances string) bool {
	t.Helper()
	const marker = "PODD_TEST_USER_NAMESPACE"
	if os.Getenv(marker) != "" {
		if err := os.WriteFile("/proc/sys/user/max_inotify_instances", []byte(instances), 0); err != nil {
			t.Fatal(err)
		}
		return true
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), marker+"=1")
	id := []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER, UidMappings: id, GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}}
	out, err := child.CombinedOutput(cmd)
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("in a user namespace: %v\n%s", err, out)
	}
	return false
}

// exhaustInotifyInstances creates inotify instances up to the limit. Each call of
// closeOne closes one instance.
func exhaustInotifyInstances(t *testing.T) (closeOne func()) {
	t.Helper()
	var held []int
	for {
		fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
		if errors.Is(err, unix.EMFILE) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, fd)
	}
	if len(held) == 0 {
		t.Fatal("no inotify instance is available")
	}
	return func() {
		unix.Close(held[0])
		held = held[1:]
	}
}

// anyKind registers every plugin and sends the plugin's name to registered.
type anyKind struct{ registered chan string }

type registration struct{}

func (registration) Done() <-chan struct{} { return nil }
func (registration) Displaced() bool       { return false }
func (registration) Unregister()           {}

func (k anyKind) Register(_ context.Context, p Plugin) (Registration, error) {
	k.registered <- p.Name
	return registration{}, nil
}

// A fakePlugin serves the registration API of a plugin.
type fakePlugin struct {
	v1.UnimplementedRegistrationServer
	name string
}

func (i fakePlugin) GetInfo(context.Context, *v1.InfoRequest) (*v1.PluginInfo, error) {
	return &v1.PluginInfo{Type: "any", Name: i.name, SupportedVersions: []string{"v1"}}, nil
}

func (fakePlugin) NotifyRegistrationStatus(context.Context, *v1.RegistrationStatus) (*v1.RegistrationStatusResponse, error) {
	return &v1.RegistrationStatusResponse{}, nil
}

// startPlugin serves a fakePlugin at the socket <dir>/<name>.sock until the test ends.
func startPlugin(t *testing.T, dir, name string) {
	t.Helper()
	ln, err := net.Listen("unix", filepath.Join(dir, name+".sock"))
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	v1.RegisterRegistrationServer(s, fakePlugin{name: name})
	ended := make(chan struct{})
	go func() { defer close(ended); _ = s.Serve(ln) }()
	t.Cleanup(func() { s.Stop(); <-ended })
}

// A logBuffer is a log that a test reads while other goroutines write to it.
type logBuffer struct {
	mu    sync.Mutex // guards text
	text  bytes.Buffer
	wrote chan struct{}
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.wrote <- struct{}{}:
	default:
	}
	return l.text.Write(p)
}

// until waits until the log contains want.
func (l *logBuffer) until(want string) {
	for {
		l.mu.Lock()
		found := strings.Contains(l.text.String(), want)
		l.mu.Unlock()
		if found {
			return
		}
		<-l.wrote
	}
}

// TestRun_WithoutInotify checks that plugins are found by polling while all inotify instances are
// in use. When an instance is released, the Watcher must use events again.
func TestRun_WithoutInotify(t *testing.T) {
	if !inUserNamespace(t, "3") {
		return
	}
	closeOne := exhaustInotifyInstances(t)
	dir := filepath.Join(t.TempDir(), DirName)
	log := &logBuffer{wrote: make(chan struct{}, 1)}
	kind := anyKind{make(chan string)}
	w := &Watcher{Dir: dir, Handlers: map[string]Handler{"any": kind}, Log: slog.New(slog.NewTextHandler(log, nil))}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); w.Run(ctx) }()
	log.until("polling it")
	startPlugin(t, dir, "polled")
	if got := <-kind.registered; got != "polled" {
		t.Errorf("registered plugin: got %q, want polled", got)
	}
	closeOne()
	log.until("watched again")
	startPlugin(t, dir, "watched")
	if got := <-kind.registered; got != "watched" {
		t.Errorf("registered plugin: got %q, want watched", got)
	}
	cancel()
	<-ended
	if n := strings.Count(log.text.String(), "max_user_instances"); n != 1 {
		t.Errorf("the cause was logged %d times, want once:\n%s", n, log.text.String())
	}
}
