// Package cadvisor serves the REST API of cAdvisor, which the kubelet served until Kubernetes 1.11:
//
//	/api/v1.3/machine                the hardware of the node
//	/api/v1.3/containers/CGROUP      a cgroup, with the names of its children
//	/api/v1.3/subcontainers/CGROUP   a cgroup and all cgroups below it
//	/api/v2.1/machine                as in version 1.3
//	/api/v2.1/machinestats           the usage of the node
//	/api/v2.1/spec/CGROUP            the limits of a cgroup; with ?recursive=true, also of those below
//	/api/v2.1/stats/CGROUP           the same, with the usage
//
// The cgroups are those of the node, of pods and of their containers. podd keeps no history, so each
// cgroup has one sample of its usage, which is at most a second old. Parameters that select samples
// have no effect.
package cadvisor

import (
	"context"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/google/cadvisor/lib/model"

	"podd/server"
)

// Handler returns a handler for GET and POST requests for /api/ and the paths below it. cAdvisor's own
// client uses POST. The handler never reads the body of a request.
func Handler(m server.Meter) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			w.Header().Set("Connection", "close") // because the body is not read
		}
		version, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/api/"), "/")
		kind, cgroup, _ := strings.Cut(rest, "/")
		switch query := findQuery(version, kind); {
		case version == "":
			io.WriteString(w, "Supported API versions: v1.3,v2.1\n")
		case query == nil:
			http.Error(w, "podd serves only /api/v1.3/{containers,machine,subcontainers} and /api/v2.1/{machine,machinestats,spec,stats} of cAdvisor's API", http.StatusNotFound)
		default:
			query.reply(w, r, m, "/"+strings.Trim(cgroup, "/"))
		}
	})
}

// MachineHandler returns a handler that responds with the hardware of the node, as the kubelet did at
// /spec/.
func MachineHandler(m server.Meter) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { query(queryMachine).reply(w, r, m, "/") })
}

// A query returns the response for a request, which is encoded as JSON.
type query func(context.Context, server.Meter, request) (any, error)

// A request selects a cgroup and, if isRecursive is set, all cgroups below it.
type request struct {
	cgroup      string
	isRecursive bool
}

// findQuery returns the query for a kind of request in a version of the API, or nil if podd does not
// serve it.
func findQuery(version, kind string) query {
	switch version + "/" + kind {
	case "v1.3/machine", "v2.1/machine":
		return queryMachine
	case "v1.3/containers":
		return queryContainer
	case "v1.3/subcontainers":
		return querySubcontainers
	case "v2.1/machinestats":
		return queryMachineStats
	case "v2.1/spec":
		return querySpec
	case "v2.1/stats":
		return queryStats
	}
	return nil
}

// reply responds with the result of the query.
func (q query) reply(w http.ResponseWriter, r *http.Request, m server.Meter, cgroup string) {
	parameters := r.URL.Query()
	if t := parameters.Get("type"); t != "" && t != "name" {
		http.Error(w, "podd finds containers only by the name of their cgroup (type=name)", http.StatusBadRequest)
		return
	}
	result, err := q(r.Context(), m, request{cgroup, parameters.Get("recursive") == "true"})
	if e, ok := err.(*server.Error); ok {
		http.Error(w, e.Message, e.Status)
		return
	}
	if err != nil {
		http.Error(w, "measuring resource usage: "+err.Error(), http.StatusInternalServerError)
		return
	}
	server.Reply(w, http.StatusOK, result)
}

func queryMachine(ctx context.Context, m server.Meter, _ request) (any, error) { return m.Machine(ctx) }

func queryContainer(ctx context.Context, m server.Meter, r request) (any, error) {
	r.isRecursive = false // version 1.3 has another kind of request for this
	cgroups, err := queryVersion1(ctx, m, r)
	if err != nil {
		return nil, err
	}
	return cgroups[0], nil
}

func querySubcontainers(ctx context.Context, m server.Meter, r request) (any, error) {
	r.isRecursive = true
	return queryVersion1(ctx, m, r)
}

// queryVersion1 returns the cgroups of the request in version 1.3 of the API. Without an error, there
// is at least one.
func queryVersion1(ctx context.Context, m server.Meter, r request) ([]*model.ContainerInfo, error) {
	all, err := m.Containers(ctx)
	if err != nil {
		return nil, err
	}
	chosen, err := r.choose(all)
	if err != nil {
		return nil, err
	}
	children, result := childrenByParent(all), make([]*model.ContainerInfo, 0, len(chosen))
	for _, c := range chosen {
		result = append(result, withChildren(c, children))
	}
	return result, nil
}

// choose returns the cgroup of the request and, if the request is recursive, all cgroups below it,
// sorted by name. It returns an error with status 404 if there is no such cgroup.
func (r request) choose(all map[string]*model.ContainerInfo) ([]*model.ContainerInfo, error) {
	if all[r.cgroup] == nil {
		return nil, server.NewNotFoundError("unknown container " + r.cgroup)
	}
	if !r.isRecursive {
		return []*model.ContainerInfo{all[r.cgroup]}, nil
	}
	var chosen []*model.ContainerInfo
	for _, name := range sortedNames(all) {
		if r.cgroup == "/" || name == r.cgroup || strings.HasPrefix(name, r.cgroup+"/") {
			chosen = append(chosen, all[name])
		}
	}
	return chosen, nil
}

// withChildren returns a copy of c with the references to its children.
func withChildren(c *model.ContainerInfo, children map[string][]model.ContainerReference) *model.ContainerInfo {
	v := *c // a copy, because the Meter shares its results
	v.Subcontainers = children[c.Name]
	return &v
}

// childrenByParent returns the references to the children of each cgroup, sorted by name. The parent
// of a cgroup is the nearest measured cgroup above it.
func childrenByParent(all map[string]*model.ContainerInfo) map[string][]model.ContainerReference {
	children := map[string][]model.ContainerReference{}
	for _, name := range sortedNames(all) {
		for parent := name; parent != "/" && parent != "."; {
			if parent = path.Dir(parent); all[parent] != nil {
				children[parent] = append(children[parent], model.ContainerReference{Name: name})
				break
			}
		}
	}
	return children
}

func sortedNames(all map[string]*model.ContainerInfo) []string {
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
