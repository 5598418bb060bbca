package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"podd/runtime/runtimetest/child"
	"podd/server"
)

// nodeName is podd's node name, the suffix of the names of its pods.
const nodeName = "bench"

// daemon is the podd that is measured.
type daemon struct {
	b          *bench
	dir        string
	cmd        *exec.Cmd     // nil if podd is not running
	exited     chan struct{} // closed when the process has exited
	extraFlags []string      // additional flags of the next process
}

func newDaemon(b *bench) (*daemon, error) {
	d := &daemon{b: b, dir: filepath.Join(b.dir, "podd.d")}
	for _, dir := range []string{d.manifestDir(), d.stagingDir(), d.podsDir()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	return d, nil
}

func (d *daemon) manifestDir() string { return filepath.Join(d.dir, "manifests") }
func (d *daemon) stagingDir() string  { return filepath.Join(d.dir, "staged") }

// podsDir returns the directory in which podd has a subdirectory for each pod. podd removes the
// subdirectory after it has removed everything else that belongs to the pod.
func (d *daemon) podsDir() string    { return filepath.Join(d.dir, "root/pods") }
func (d *daemon) socketPath() string { return filepath.Join(d.dir, "run", server.SocketName) }

func (d *daemon) flags() []string {
	return slices.Concat([]string{
		"--root-dir", filepath.Join(d.dir, "root"), "--run-dir", filepath.Join(d.dir, "run"),
		"--pod-logs-dir", filepath.Join(d.dir, "logs"), "--pod-manifest-path", d.manifestDir(),
		"--hostname-override", nodeName, "--container-runtime-endpoint", d.b.stack.Endpoint(),
		"--cgroup-root", d.b.stack.CgroupParent() + "/" + nodeName, "--healthz-port", "0", "--enable-server=false", "--max-pods", "1000",
		"--eviction-hard", "memory.available<1Mi", "--image-gc-high-threshold", "100", // a test host may be short of disk space
	}, d.extraFlags, d.b.Flags)
}

// launch starts podd and returns the time before the start.
func (d *daemon) launch() (time.Time, error) {
	log, err := os.OpenFile(filepath.Join(d.dir, "podd.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return time.Time{}, err
	}
	defer log.Close() // podd has its own copy of the file descriptor
	cmd := exec.Command(d.b.Podd, d.flags()...)
	cmd.Stdout, cmd.Stderr = log, log
	at, exited, err := launch(cmd)
	if err != nil {
		return at, fmt.Errorf("starting podd: %w", err)
	}
	d.cmd, d.exited = cmd, exited
	return at, nil
}

// launch starts a program, which is killed when this program exits. It returns the time before
// the start and a channel that is closed when the program has exited.
func launch(cmd *exec.Cmd) (time.Time, chan struct{}, error) {
	startTime, exited := time.Now(), make(chan struct{})
	if err := child.Start(cmd); err != nil {
		close(exited)
		return startTime, exited, err
	}
	go func() {
		defer close(exited)
		_ = cmd.Wait() // the error is ignored, because the caller reads the exit status from cmd.ProcessState
	}()
	return startTime, exited, nil
}

// settleTime is the delay between the start of podd and a measurement. During this time podd
// releases the memory that it needs only for its start.
const settleTime = 4 * time.Second

// startAndSettle starts podd, waits until podd is ready, and then waits for settleTime.
func (d *daemon) startAndSettle(ctx context.Context) error {
	if _, err := d.launch(); err != nil {
		return err
	}
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for !d.isReady(ctx) {
		select {
		case <-ticker.C:
		case <-d.exited:
			return fmt.Errorf("starting podd: podd exited: %s; see podd.log in %s", d.cmd.ProcessState, d.dir)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return sleep(ctx, settleTime)
}

// socketTransport returns a transport that connects to podd's socket.
func (d *daemon) socketTransport() *http.Transport {
	return &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", d.socketPath())
	}}
}

// isReady reports whether podd is connected to the runtime.
func (d *daemon) isReady(ctx context.Context) bool {
	transport := d.socketTransport()
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://podd/v1/state", nil)
	if err != nil {
		return false
	}
	reply, err := client.Do(r)
	if err != nil {
		return false
	}
	defer reply.Body.Close()
	var v server.View
	return json.NewDecoder(reply.Body).Decode(&v) == nil && v.Runtime != ""
}

// stop stops podd. The pods continue to run.
func (d *daemon) stop() error {
	if d.cmd == nil {
		return nil
	}
	err := d.cmd.Process.Signal(unix.SIGTERM)
	<-d.exited
	if state := d.cmd.ProcessState; err == nil && !state.Success() {
		err = fmt.Errorf("stopping podd: podd exited: %s; see podd.log in %s", state, d.dir)
	}
	d.cmd = nil
	return err
}

// stageManifests writes the manifests of pods to a directory that podd does not watch.
func (d *daemon) stageManifests(pods []pod) error {
	for _, p := range pods {
		if err := os.WriteFile(filepath.Join(d.stagingDir(), p.name+".yaml"), []byte(p.text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// publishManifests moves the staged manifests of pods to the manifest directory.
func (d *daemon) publishManifests(pods []pod) error {
	for _, p := range pods {
		name := p.name + ".yaml"
		if err := os.Rename(filepath.Join(d.stagingDir(), name), filepath.Join(d.manifestDir(), name)); err != nil {
			return err
		}
	}
	return nil
}

// removeManifests removes the manifests of pods from the manifest directory.
func (d *daemon) removeManifests(pods []pod) error {
	var errs []error
	for _, p := range pods {
		errs = append(errs, os.Remove(filepath.Join(d.manifestDir(), p.name+".yaml")))
	}
	return errors.Join(errs...)
}
