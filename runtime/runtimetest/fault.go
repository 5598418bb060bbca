package runtimetest

import (
	"context"
	"path"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// A Fault is an error to inject into a call. If Delay, Hangs, Err and OnApply are not set, it
// breaks the connection, so that the caller cannot determine whether the call had an effect.
type Fault struct {
	// Method is the name of the method, such as "StartContainer". "" selects all methods.
	Method string
	// Match reports whether the fault applies to a request. nil selects all requests.
	Match func(request any) bool
	// Nth is the number of the affected call. The first call after Inject has the number 1.
	// Zero selects every call.
	Nth int
	// AfterEffect executes the call before the fault is applied.
	AfterEffect bool
	// OnApply, if it is not nil, is called when the fault is applied. It may call the Runtime.
	OnApply func()
	// Delay is added to the duration of the call, which then succeeds or fails with Err.
	Delay time.Duration
	// IgnoresCancel makes the call continue after its caller has canceled it, so that the call
	// takes effect later. Otherwise a canceled call has no effect. If IgnoresCancel is set,
	// RunPodSandbox and CreateContainer wait for the Delay after they have reserved the name and
	// before the new object is listed.
	IgnoresCancel bool
	// Hangs blocks the call until the caller cancels it, Disconnect is called or the test ends.
	Hangs bool
	// Err is the error of the call, either a gRPC status error or another error.
	Err error
}

type fault struct {
	Fault
	calls int // number of matching calls so far
}

// Inject adds a fault and returns a function that removes it. If several faults apply to a call,
// the one that was added first is used.
func (r *Runtime) Inject(f Fault) (remove func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	injected := &fault{Fault: f}
	r.faults = append(r.faults, injected)
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.faults = slices.DeleteFunc(r.faults, func(f *fault) bool { return f == injected })
	}
}

// nextFaultLocked returns the fault for a call, or nil. It counts the call for every fault that
// matches.
func (r *Runtime) nextFaultLocked(method string, request any) *fault {
	var hit *fault
	for _, f := range r.faults {
		if f.Method != "" && f.Method != method || f.Match != nil && !f.Match(request) {
			continue
		}
		f.calls++
		if hit == nil && (f.Nth == 0 || f.Nth == f.calls) {
			hit = f
		}
	}
	return hit
}

// intercept wraps the calls of both interfaces. It injects faults and records the call.
func (r *Runtime) intercept(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	method := path.Base(info.FullMethod)
	r.mu.Lock()
	subject := r.subjectLocked(request)
	disconnected, isDown := r.disconnected, r.isDown
	var f *fault
	if !isDown {
		f = r.nextFaultLocked(method, request)
	}
	r.mu.Unlock()
	if isDown {
		return nil, errDown
	}
	start := time.Now()
	response, err := r.serveWith(ctx, method, f, disconnected, func(ctx context.Context) (any, error) { return handler(ctx, request) })
	r.record(Call{Method: method, Subject: subject, At: start, Request: request, Err: err})
	return response, err
}

// errDown is the error that a client gets if no process listens on the socket.
var errDown = status.Error(codes.Unavailable,
	`connection error: desc = "transport: Error while dialing: dial unix /run/runtimetest.sock: connect: connection refused"`)

// serveWith executes a call and applies fault f, if f is not nil.
func (r *Runtime) serveWith(ctx context.Context, method string, f *fault, disconnected chan struct{}, call func(context.Context) (any, error)) (any, error) {
	if f == nil {
		return r.execute(ctx, disconnected, call)
	}
	if f.OnApply != nil && !f.AfterEffect {
		f.OnApply()
	}
	if f.IgnoresCancel {
		return r.execute(ctx, disconnected, func(ctx context.Context) (any, error) {
			ctx = context.WithoutCancel(ctx)
			if method == "RunPodSandbox" || method == "CreateContainer" {
				return call(context.WithValue(ctx, midCallDelayKey{}, f.Delay))
			}
			if err := r.sleep(ctx, nil, f.Delay); err != nil {
				return nil, err
			}
			return call(ctx)
		})
	}
	if !f.AfterEffect {
		if err := r.apply(ctx, f, disconnected); err != nil {
			return nil, err
		}
	}
	response, err := r.execute(ctx, disconnected, call)
	if err != nil || !f.AfterEffect {
		return response, err
	}
	if f.OnApply != nil {
		f.OnApply()
	}
	if err := r.apply(ctx, f, disconnected); err != nil {
		return nil, err
	}
	return response, nil
}

// apply waits for the Delay of the fault or, if Hangs is set, for the end of ctx. It returns the
// error of the call, or nil if the call succeeds.
func (r *Runtime) apply(ctx context.Context, f *fault, disconnected chan struct{}) error {
	if f.Hangs {
		return r.sleep(ctx, disconnected, 1<<62)
	}
	if f.Delay > 0 {
		if err := r.sleep(ctx, disconnected, f.Delay); err != nil {
			return err
		}
	}
	switch {
	case f.Err != nil:
		return f.Err
	case f.Delay > 0, f.OnApply != nil:
		return nil
	}
	return errLost
}

// midCallDelayKey is the context key of a delay in the middle of a call.
type midCallDelayKey struct{}

// waitMidCallLocked waits for the delay in ctx, if there is one. It releases the lock while it
// waits.
func (r *Runtime) waitMidCallLocked(ctx context.Context) error {
	delay, ok := ctx.Value(midCallDelayKey{}).(time.Duration)
	if !ok {
		return nil
	}
	r.mu.Unlock()
	defer r.mu.Lock()
	return r.sleep(ctx, nil, delay)
}

// sleep waits for d. It returns an error if the call is canceled, Disconnect is called or the test
// ends first.
func (r *Runtime) sleep(ctx context.Context, disconnected chan struct{}, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-disconnected:
		return errLost
	case <-r.testContext.Done():
		return errLost
	case <-timer.C:
		return nil
	}
}

// execute runs a call in a separate goroutine, because a call continues in the runtime after its
// caller has canceled it or the connection has broken. A call that does not wait ignores its
// context.
func (r *Runtime) execute(ctx context.Context, disconnected chan struct{}, call func(context.Context) (any, error)) (any, error) {
	type outcome struct {
		response any
		err      error
	}
	done := make(chan outcome, 1)
	r.callsInProgress.Go(func() {
		response, err := call(ctx)
		done <- outcome{response, err}
	})
	select {
	case o := <-done:
		return o.response, o.err
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-disconnected:
		return nil, errLost
	case <-r.testContext.Done():
		return nil, errLost
	}
}
