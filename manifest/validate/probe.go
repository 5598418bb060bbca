package validate

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateProbes validates the probes of a regular container or sidecar.
func validateProbes(c *v1.Container, path *field.Path) field.ErrorList {
	errs := validateRestartingProbe(c.LivenessProbe, path.Child("livenessProbe"))
	errs = append(errs, validateRestartingProbe(c.StartupProbe, path.Child("startupProbe"))...)
	at := path.Child("readinessProbe")
	errs = append(errs, validateProbe(c.ReadinessProbe, at)...)
	if p := c.ReadinessProbe; p != nil && p.TerminationGracePeriodSeconds != nil {
		errs = append(errs, field.Invalid(at.Child("terminationGracePeriodSeconds"), *p.TerminationGracePeriodSeconds, "must not be set for readinessProbes"))
	}
	return errs
}

// forbidProbes refuses probes of an init container that is not a sidecar.
func forbidProbes(c *v1.Container, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	forbid := func(name string, p *v1.Probe) {
		if p != nil {
			errs = append(errs, field.Forbidden(path.Child(name), "may not be set for init containers without restartPolicy=Always"))
		}
	}
	forbid("livenessProbe", c.LivenessProbe)
	forbid("readinessProbe", c.ReadinessProbe)
	forbid("startupProbe", c.StartupProbe)
	return errs
}

// validateRestartingProbe validates a probe that restarts the container if it fails.
func validateRestartingProbe(p *v1.Probe, path *field.Path) field.ErrorList {
	errs := validateProbe(p, path)
	if p != nil && p.SuccessThreshold != 1 {
		errs = append(errs, field.Invalid(path.Child("successThreshold"), p.SuccessThreshold, "must be 1"))
	}
	return errs
}

func validateProbe(p *v1.Probe, path *field.Path) field.ErrorList {
	if p == nil {
		return nil
	}
	errs := validateHandler(&p.ProbeHandler, path)
	checkNotNegative := func(name string, n int32) {
		if n < 0 {
			errs = append(errs, field.Invalid(path.Child(name), n, "must be greater than or equal to 0"))
		}
	}
	checkNotNegative("initialDelaySeconds", p.InitialDelaySeconds)
	checkNotNegative("timeoutSeconds", p.TimeoutSeconds)
	checkNotNegative("periodSeconds", p.PeriodSeconds)
	checkNotNegative("successThreshold", p.SuccessThreshold)
	checkNotNegative("failureThreshold", p.FailureThreshold)
	if g := p.TerminationGracePeriodSeconds; g != nil && *g <= 0 {
		errs = append(errs, field.Invalid(path.Child("terminationGracePeriodSeconds"), *g, "must be greater than 0"))
	}
	return errs
}

// validateHandler validates the handler of a probe. A probe must have exactly one handler.
func validateHandler(h *v1.ProbeHandler, path *field.Path) field.ErrorList {
	handlers := handlerChecker{path: path}
	handlers.add("exec", h.Exec != nil, func(at *field.Path) field.ErrorList { return validateExec(h.Exec, at) })
	handlers.add("httpGet", h.HTTPGet != nil, func(at *field.Path) field.ErrorList { return validateHTTPGet(h.HTTPGet, at) })
	handlers.add("tcpSocket", h.TCPSocket != nil, func(at *field.Path) field.ErrorList { return validatePortOrName(h.TCPSocket.Port, at.Child("port")) })
	handlers.add("grpc", h.GRPC != nil, func(at *field.Path) field.ErrorList { return validatePort(at.Child("port"), h.GRPC.Port) })
	return handlers.check()
}

// handlerChecker collects the errors of the handlers of a probe or hook. A probe or hook must have
// exactly one handler.
type handlerChecker struct {
	path  *field.Path
	count int
	errs  field.ErrorList
}

func (h *handlerChecker) add(name string, isSet bool, check func(*field.Path) field.ErrorList) {
	if !isSet {
		return
	}
	if h.count++; h.count > 1 {
		h.errs = append(h.errs, field.Forbidden(h.path.Child(name), "may not specify more than 1 handler type"))
		return
	}
	h.errs = append(h.errs, check(h.path.Child(name))...)
}

func (h *handlerChecker) check() field.ErrorList {
	if h.count == 0 {
		h.errs = append(h.errs, field.Required(h.path, "must specify a handler type"))
	}
	return h.errs
}

func validateExec(a *v1.ExecAction, path *field.Path) field.ErrorList {
	if len(a.Command) == 0 {
		return field.ErrorList{field.Required(path.Child("command"), "")}
	}
	var errs field.ErrorList
	for i, s := range a.Command {
		errs = append(errs, forbidNUL(path.Child("command").Index(i), s)...)
	}
	return errs
}

func validateHTTPGet(a *v1.HTTPGetAction, path *field.Path) field.ErrorList {
	errs := validatePortOrName(a.Port, path.Child("port"))
	errs = append(errs, validateOneOf(path.Child("scheme"), a.Scheme, v1.URISchemeHTTP, v1.URISchemeHTTPS)...)
	for i, h := range a.HTTPHeaders {
		at := path.Child("httpHeaders").Index(i)
		errs = append(errs, invalidErrors(at.Child("name"), h.Name, validation.IsHTTPHeaderName(h.Name))...)
		if strings.ContainsAny(h.Value, "\r\n\x00") {
			// Refuse a line break or a NUL byte in the value. Kubernetes accepts it, but every
			// attempt of the probe fails.
			errs = append(errs, field.Invalid(at.Child("value"), "", "must be a single line"))
		}
	}
	return errs
}

// validatePortOrName validates a port. A name is resolved only when the probe runs.
func validatePortOrName(port intstr.IntOrString, path *field.Path) field.ErrorList {
	if port.Type == intstr.Int {
		return validatePort(path, port.IntVal)
	}
	return invalidErrors(path, port.StrVal, validation.IsValidPortName(port.StrVal))
}
