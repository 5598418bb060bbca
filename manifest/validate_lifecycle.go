package manifest

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateLifecycle checks the hooks of a container that goes on, in a pod with
// this grace.
func validateLifecycle(l *v1.Lifecycle, grace int64, path *field.Path) field.ErrorList {
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
	return errs
}

// forbidLifecycle: what runs to its end before anything else starts has no hooks.
func forbidLifecycle(c *v1.Container, path *field.Path) field.ErrorList {
	if c.Lifecycle == nil {
		return nil
	}
	return field.ErrorList{field.Forbidden(path.Child("lifecycle"), "may not be set for init containers without restartPolicy=Always")}
}

// validateHook wants exactly one thing to do.
func validateHook(h *v1.LifecycleHandler, grace int64, path *field.Path) field.ErrorList {
	one := oneHandler{path: path}
	one.add("exec", h.Exec != nil, func(at *field.Path) field.ErrorList { return validateExec(h.Exec, at) })
	one.add("httpGet", h.HTTPGet != nil, func(at *field.Path) field.ErrorList { return validateHTTPGet(h.HTTPGet, at) })
	// That it is not served is said elsewhere.
	one.add("tcpSocket", h.TCPSocket != nil, func(*field.Path) field.ErrorList { return nil })
	one.add("sleep", h.Sleep != nil, func(at *field.Path) field.ErrorList { return validateSleep(h.Sleep, grace, at) })
	return one.check()
}

// validateSleep: a grace that is no good is told of where it stands.
func validateSleep(s *v1.SleepAction, grace int64, path *field.Path) field.ErrorList {
	if grace < 0 || s.Seconds >= 0 && s.Seconds <= grace {
		return nil
	}
	return field.ErrorList{field.Invalid(path, s.Seconds, fmt.Sprintf("must be non-negative and less than terminationGracePeriodSeconds (%d)", grace))}
}
