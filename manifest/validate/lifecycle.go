package validate

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateLifecycle validates the hooks and the stop signal of a regular container or sidecar.
// grace is the grace period of the pod in seconds, and os is the operating system of the pod.
func validateLifecycle(l *v1.Lifecycle, grace int64, os *v1.PodOS, path *field.Path) field.ErrorList {
	if l == nil {
		return nil
	}
	var errs field.ErrorList
	if l.PostStart != nil {
		errs = append(errs, validateHook(l.PostStart, grace, path.Child("postStart"))...)
	}
	if l.PreStop != nil {
		errs = append(errs, validateHook(l.PreStop, grace, path.Child("preStop"))...)
	}
	if l.StopSignal != nil {
		errs = append(errs, validateStopSignal(*l.StopSignal, os, path.Child("stopSignal"))...)
	}
	return errs
}

// validateStopSignal validates a signal. It returns an error if the pod does not name its operating
// system.
func validateStopSignal(s v1.Signal, os *v1.PodOS, path *field.Path) field.ErrorList {
	if os == nil {
		return field.ErrorList{field.Forbidden(path, "requires spec.os.name: linux")}
	}
	return validateOneOf(path, s, stopSignals...)
}

// forbidLifecycle refuses hooks of an init container that is not a sidecar.
func forbidLifecycle(c *v1.Container, path *field.Path) field.ErrorList {
	if c.Lifecycle == nil {
		return nil
	}
	return field.ErrorList{field.Forbidden(path.Child("lifecycle"), "may not be set for init containers without restartPolicy=Always")}
}

// stopSignals lists the signals of Linux.
var stopSignals = []v1.Signal{
	v1.SIGABRT, v1.SIGALRM, v1.SIGBUS, v1.SIGCHLD, v1.SIGCLD, v1.SIGCONT, v1.SIGFPE, v1.SIGHUP, v1.SIGILL, v1.SIGINT,
	v1.SIGIO, v1.SIGIOT, v1.SIGKILL, v1.SIGPIPE, v1.SIGPOLL, v1.SIGPROF, v1.SIGPWR, v1.SIGQUIT, v1.SIGSEGV, v1.SIGSTKFLT,
	v1.SIGSTOP, v1.SIGSYS, v1.SIGTERM, v1.SIGTRAP, v1.SIGTSTP, v1.SIGTTIN, v1.SIGTTOU, v1.SIGURG, v1.SIGUSR1, v1.SIGUSR2,
	v1.SIGVTALRM, v1.SIGWINCH, v1.SIGXCPU, v1.SIGXFSZ,
	v1.SIGRTMIN, v1.SIGRTMINPLUS1, v1.SIGRTMINPLUS2, v1.SIGRTMINPLUS3, v1.SIGRTMINPLUS4, v1.SIGRTMINPLUS5, v1.SIGRTMINPLUS6,
	v1.SIGRTMINPLUS7, v1.SIGRTMINPLUS8, v1.SIGRTMINPLUS9, v1.SIGRTMINPLUS10, v1.SIGRTMINPLUS11, v1.SIGRTMINPLUS12,
	v1.SIGRTMINPLUS13, v1.SIGRTMINPLUS14, v1.SIGRTMINPLUS15,
	v1.SIGRTMAXMINUS14, v1.SIGRTMAXMINUS13, v1.SIGRTMAXMINUS12, v1.SIGRTMAXMINUS11, v1.SIGRTMAXMINUS10, v1.SIGRTMAXMINUS9,
	v1.SIGRTMAXMINUS8, v1.SIGRTMAXMINUS7, v1.SIGRTMAXMINUS6, v1.SIGRTMAXMINUS5, v1.SIGRTMAXMINUS4, v1.SIGRTMAXMINUS3,
	v1.SIGRTMAXMINUS2, v1.SIGRTMAXMINUS1, v1.SIGRTMAX,
}

// validateHook validates a hook, which must have exactly one handler.
func validateHook(h *v1.LifecycleHandler, grace int64, path *field.Path) field.ErrorList {
	handlers := handlerChecker{path: path}
	handlers.add("exec", h.Exec != nil, func(at *field.Path) field.ErrorList { return validateExec(h.Exec, at) })
	handlers.add("httpGet", h.HTTPGet != nil, func(at *field.Path) field.ErrorList { return validateHTTPGet(h.HTTPGet, at) })
	// tcpSocket is not validated, because package supported refuses it.
	handlers.add("tcpSocket", h.TCPSocket != nil, func(*field.Path) field.ErrorList { return nil })
	handlers.add("sleep", h.Sleep != nil, func(at *field.Path) field.ErrorList { return validateSleep(h.Sleep, grace, at) })
	return handlers.check()
}

// validateSleep validates the duration of a sleep hook. It returns nil if grace is negative. This
// does not happen, because package defaults replaces a negative grace period.
func validateSleep(s *v1.SleepAction, grace int64, path *field.Path) field.ErrorList {
	if grace < 0 || s.Seconds >= 0 && s.Seconds <= grace {
		return nil
	}
	return field.ErrorList{field.Invalid(path, s.Seconds, fmt.Sprintf("must be non-negative and less than terminationGracePeriodSeconds (%d)", grace))}
}
