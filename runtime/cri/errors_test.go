package cri

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"pgregory.net/rapid"

	"podd/runtime"
)

const id64 = "c4d69b71d588c4d69b71d588c4d69b71d588c4d69b71d588c4d69b71d5881234"

// TestClean checks the errors for messages of containerd 1.6 and 2.4, CRI-O and gRPC.
func TestClean(t *testing.T) {
	c := &Client{endpoint: "/run/x.sock"}
	for _, test := range []struct {
		name string
		code codes.Code
		say  string
		want string
		is   []error
	}{
		{
			"no socket", codes.Unavailable,
			`connection error: desc = "transport: Error while dialing: dial unix /run/x.sock: connect: no such file or directory"`,
			"/run/x.sock: the socket does not exist; start the container runtime, or set --container-runtime-endpoint to another socket (see \"podd check\")",
			[]error{runtime.ErrUnavailable},
		},
		{
			"dead socket", codes.Unavailable,
			`connection error: desc = "transport: Error while dialing: dial unix /run/x.sock: connect: connection refused"`,
			"/run/x.sock: connection refused; start the container runtime (see \"podd check\")",
			[]error{runtime.ErrUnavailable},
		},
		{
			"not root", codes.Unavailable,
			`connection error: desc = "transport: Error while dialing: dial unix /run/x.sock: connect: permission denied"`,
			"/run/x.sock: permission denied; run podd as root",
			[]error{runtime.ErrUnavailable},
		},
		{
			"runtime killed", codes.Unavailable, "error reading from server: EOF",
			"/run/x.sock: the container runtime closed the connection", []error{runtime.ErrUnavailable},
		},
		{
			"another program", codes.Unavailable,
			`connection error: desc = "error reading server preface: http2: failed reading the frame payload: http2: frame too large, note that the frame header looked like an HTTP/1.1 header"`,
			"/run/x.sock: error reading server preface: http2: failed reading the frame payload: http2: frame too large, note that the frame header looked like an HTTP/1.1 header",
			[]error{runtime.ErrUnavailable, runtime.ErrUnimplemented},
		},
		{
			"registry without HTTP/2", codes.Unknown, "http2: frame too large, note that the frame header looked like an HTTP/1.1 header",
			"http2: frame too large, note that the frame header looked like an HTTP/1.1 header", nil,
		},
		{
			"containerd starting", codes.Unavailable, "server is not initialized yet",
			"/run/x.sock: the container runtime is still starting", []error{runtime.ErrUnavailable},
		},
		{
			"hung", codes.DeadlineExceeded, "context deadline exceeded",
			"/run/x.sock: no response from the container runtime in time", []error{runtime.ErrUnavailable, context.DeadlineExceeded},
		},
		{
			"runtime shuts down", codes.Canceled, "context canceled", "context canceled", []error{runtime.ErrUnavailable},
		},
		{
			"response too large", codes.ResourceExhausted, "grpc: received message larger than max (17000000 vs. 16777216)",
			"the runtime's response is larger than podd accepts", nil,
		},
		{
			"list too large for containerd", codes.ResourceExhausted, "grpc: trying to send message larger than max (17000000 vs. 16777216)",
			"the runtime cannot send a response of this size; raise its limit (containerd: max_send_message_size in [grpc], CRI-O: grpc_max_send_msg_size)", nil,
		},
		{
			"containerd, truncated layer", codes.Unknown,
			`failed to create containerd container: error unpacking image: wrong diff id "sha256:1" calculated on extraction "sha256:2", desc "sha256:3"`,
			`failed to create containerd container: error unpacking image: wrong diff id "sha256:1" calculated on extraction "sha256:2", desc "sha256:3"`,
			[]error{runtime.ErrImageDamaged},
		},
		{
			"containerd, truncated config of an image", codes.Unknown,
			"failed to create containerd container: unexpected end of JSON input",
			"failed to create containerd container: unexpected end of JSON input",
			[]error{runtime.ErrImageDamaged},
		},
		{
			"containerd, full disk", codes.Unknown,
			`failed to create containerd container: error unpacking image: failed to extract layer sha256:1: write /x: no space left on device`,
			`failed to create containerd container: error unpacking image: failed to extract layer sha256:1: write /x: no space left on device`, nil,
		},
		{
			"containerd, sandbox name", codes.Unknown,
			`failed to reserve sandbox name "a_b_c_0": name "a_b_c_0" is reserved for "` + id64 + `"`,
			`failed to reserve sandbox name "a_b_c_0": name "a_b_c_0" is reserved`, []error{runtime.ErrNameReserved},
		},
		{
			"CRI-O, container name", codes.Unknown,
			"error reserving ctr name k8s_app_web_default_1_0 for id " + id64 + ": name is reserved",
			"error reserving ctr name k8s_app_web_default_1_0 for id c4d69b71d588: name is reserved", []error{runtime.ErrNameReserved},
		},
		{
			"CRI-O, name of a call in progress", codes.Unknown,
			"kubelet may be retrying requests that are timing out in CRI-O due to system load. Currently at stage container storage creation: error reserving ctr name k8s_app_web_default_1_0 for id " + id64 + ": name is reserved",
			"kubelet may be retrying requests that are timing out in CRI-O due to system load. Currently at stage container storage creation: error reserving ctr name k8s_app_web_default_1_0 for id c4d69b71d588: name is reserved", []error{runtime.ErrNameReserved},
		},
		{
			"NRI plugin, a CPU set is reserved", codes.Unknown,
			`failed to apply NRI adjustment: cpu set 2-3 is reserved for "system.slice"`,
			`failed to apply NRI adjustment: cpu set 2-3 is reserved for "system.slice"`, nil,
		},
		{
			"network plugin, an address is reserved", codes.Unknown,
			`failed to setup network for sandbox: plugin failed (add): name "gateway" is reserved for "10.88.0.1"`,
			`failed to setup network for sandbox: plugin failed (add): name "gateway" is reserved for "10.88.0.1"`, nil,
		},
		{
			"containerd, no container", codes.NotFound, `an error occurred when try to find container "` + id64 + `": not found`,
			"an error occurred when try to find container: not found", []error{runtime.ErrNotFound},
		},
		{
			"CRI-O, no container", codes.NotFound, `could not find container "` + id64 + `": container with ID starting with ` + id64 + ` not found: ID does not exist`,
			"could not find container: container with ID starting with c4d69b71d588 not found: ID does not exist", []error{runtime.ErrNotFound},
		},
		{
			"no CRI", codes.Unimplemented, "unknown service runtime.v1.RuntimeService",
			"unknown service runtime.v1.RuntimeService", []error{runtime.ErrUnimplemented},
		},
		{
			"UpdatePodSandboxResources of containerd 2.2", codes.Unknown, "not implemented yet", "not implemented yet",
			[]error{runtime.ErrUnimplemented},
		},
		{
			"NRI plugin without an implementation", codes.Unknown, "NRI sandbox update failed: not implemented yet",
			"NRI sandbox update failed: not implemented yet", nil,
		},
		{
			"runc, no program", codes.Unknown,
			`failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: error during container init: exec: "nope": executable file not found in $PATH: unknown`,
			`exec: "nope": executable file not found in $PATH`, nil,
		},
		{
			"crun, no program", codes.Unknown,
			"container create failed: executable file `nope` not found in $PATH: No such file or directory\n",
			"executable file `nope` not found in $PATH: No such file or directory", nil,
		},
		{
			"CRI-O, no program", codes.Unknown,
			`container create failed: time="2026-11-23T01:35:03Z" level=error msg="runc create failed: unable to start container process: error during container init: exec: \"/no/such\": stat /no/such: no such file or directory"` + "\n",
			`exec: "/no/such": stat /no/such: no such file or directory`, nil,
		},
		{
			"CRI-O, no command", codes.Unknown,
			`command error: time="2026-11-23T01:35:05Z" level=error msg="exec failed: unable to start container process: exec: \"/no/such\": stat /no/such: no such file or directory"` + "\n, stdout: , stderr: , exit code -1",
			`exec failed: unable to start container process: exec: "/no/such": stat /no/such: no such file or directory`, nil,
		},
		{
			"CRI-O, two lines of a log", codes.Unknown,
			`container create failed: time="2026-11-23T01:35:03Z" level=warning msg="slow\tdisk"` + "\n" + `time="2026-11-23T01:35:03Z" level=error msg="no disk"` + "\n",
			"slow disk no disk", nil,
		},
		{
			"CRI-O, no image", codes.Unknown,
			`reference "[overlay@/var/lib/containers/storage+/run/containers/storage:overlay.mountopt=nodev]docker.io/library/absent:1" does not resolve to an image ID`,
			`reference "docker.io/library/absent:1" does not resolve to an image ID`, []error{runtime.ErrNotFound},
		},
		{
			"CRI-O, no container to resize", codes.Unknown,
			"container with ID starting with " + id64 + " not found: ID does not exist",
			"container with ID starting with c4d69b71d588 not found: ID does not exist", []error{runtime.ErrNotFound},
		},
		{
			"CRI-O, no sandbox", codes.Unknown,
			"specified sandbox not found: " + id64 + ": PodSandbox with ID starting with " + id64 + " not found: ID does not exist",
			"specified sandbox not found: c4d69b71d588: PodSandbox with ID starting with c4d69b71d588 not found: ID does not exist", []error{runtime.ErrNotFound},
		},
		{
			"a wrapper inside", codes.Unknown,
			"failed to stop container: rpc error: code = Unknown desc = kill failed: rpc error: code = Internal desc = ttrpc: closed: unknown",
			"failed to stop container: kill failed: ttrpc: closed", nil,
		},
		{
			"no CNI", codes.Unknown, `failed to setup network for sandbox "` + id64 + `": cni plugin not initialized`,
			"failed to setup network for sandbox: cni plugin not initialized", nil,
		},
		{
			"a digest stays", codes.Unknown, "failed to get image sha256:" + id64, "failed to get image sha256:" + id64, nil,
		},
		{
			"secrets in a URL", codes.Unknown, `Get "https://user:pw@cdn.example/blob?X-Amz-Signature=abc&token=def": EOF`,
			`Get "https://cdn.example/blob": EOF`, nil,
		},
		{
			"output of a container", codes.Unknown, "boom\x1b[31m\n\tsecond\xff line", "boom [31m  second\uFFFD line", nil,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := c.convertError(t.Context(), status.Error(test.code, test.say))
			if err.Error() != test.want {
				t.Errorf("got  %q\nwant %q", err, test.want)
			}
			for _, kind := range []error{runtime.ErrNotFound, runtime.ErrNameReserved, runtime.ErrUnavailable, runtime.ErrUnimplemented, context.DeadlineExceeded} {
				if got, want := errors.Is(err, kind), contains(test.is, kind); got != want {
					t.Errorf("matches %v: got %v, want %v", kind, got, want)
				}
			}
		})
	}
	if err := c.convertError(t.Context(), nil); err != nil {
		t.Errorf("clean(nil): got error %v, want nil", err)
	}
}

func contains(all []error, one error) bool {
	for _, e := range all {
		if e == one {
			return true
		}
	}
	return false
}

// TestClean_Canceled checks that the error of a canceled call is context.Canceled, whatever error the
// runtime returns.
func TestClean_Canceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, code := range []codes.Code{codes.Canceled, codes.Unavailable, codes.Unknown} {
		err := (&Client{}).convertError(ctx, status.Error(code, "context canceled"))
		if !errors.Is(err, context.Canceled) || errors.Is(err, runtime.ErrUnavailable) {
			t.Errorf("code %v of a canceled call: got error %#v, want only %v", code, err, context.Canceled)
		}
	}
}

// TestReadable checks that every error text of a runtime becomes a text of limited length without control
// characters and gRPC wrappers.
func TestReadable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		say := rapid.SampledFrom(causePrefixes).Draw(t, "wrapper") + rapid.StringN(0, 3000, 9000).Draw(t, "text")
		say += "rpc error: code = Unknown desc = " + string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))
		got := makeReadable(say)
		switch {
		case len(got) > maxErrorBytes+len("…"):
			t.Errorf("got %d bytes, want at most %d", len(got), maxErrorBytes+len("…"))
		case strings.ContainsAny(got, "\n\r\t\x00\x1b"):
			t.Errorf("got %q, want no control characters in it", got)
		case strings.Contains(got, "rpc error: code = Unknown"):
			t.Errorf("got %q, want no gRPC wrapper in it", got)
		}
	})
}

func FuzzPullFailure(f *testing.F) {
	for _, test := range pullMessages {
		f.Add(test.image, test.say)
	}
	f.Fuzz(func(t *testing.T, image, say string) {
		why := parsePullError(image, say, true)
		if why.reason == "" || len(why.text) > 3*maxErrorBytes || strings.ContainsAny(why.text, "\n\x1b\x00") {
			t.Errorf("got %+v, want a reason and a short text without control characters", why)
		}
	})
}

// TestClean_RuntimeDeadline checks a call that the runtime cancels because it knows the deadline of the
// caller. The error can arrive shortly before ctx is done, and must be a deadline nevertheless.
func TestClean_RuntimeDeadline(t *testing.T) {
	soon, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	later, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	for ctx, want := range map[context.Context]bool{soon: true, later: false, t.Context(): false} {
		kinds := classify(ctx, codes.Canceled, "stream terminated by RST_STREAM with error code: CANCEL")
		if got := slices.Contains(kinds, context.DeadlineExceeded); got != want {
			t.Errorf("kinds of the error: got %v, want context.DeadlineExceeded among them: %t", kinds, want)
		}
		err := (&Client{}).pullError(ctx, "web:1", true, status.Error(codes.Canceled, "stream terminated by RST_STREAM with error code: CANCEL"))
		if got := errors.Is(err, context.DeadlineExceeded); got != want {
			t.Errorf("pull: got error %v, want context.DeadlineExceeded: %t", err, want)
		}
	}
}
