package openapi

// Path contains the operations of a path.
type Path struct {
	Get        *Operation  `json:"get,omitempty"`
	Put        *Operation  `json:"put,omitempty"`
	Post       *Operation  `json:"post,omitempty"`
	Delete     *Operation  `json:"delete,omitempty"`
	Patch      *Operation  `json:"patch,omitempty"`
	Parameters []Parameter `json:"parameters,omitempty"`
}

func (p *Path) operations() []*Operation {
	return []*Operation{p.Get, p.Put, p.Post, p.Delete, p.Patch}
}

// paths contains the paths and the models of a group version.
type paths struct {
	models models
	byPath map[string]*Path
}

// add adds the paths of a resource.
func (p *paths) add(r *Resource) {
	versionPath := "/" + groupVersionPath(r.Kind.GroupVersion()) + "/"
	scopePath := versionPath
	o := operations{models: p.models, resourceKind: r.Kind.Kind, kind: r.Kind, object: p.models.addKind(r.Object, r.Kind)}
	if r.Namespaced {
		o.scope, scopePath = "Namespaced", versionPath+"namespaces/{namespace}/"
	}
	p.set(scopePath+r.Plural, o.collectionPath(r))
	p.set(scopePath+r.Plural+"/{name}", o.objectPath(r))
	if r.Namespaced && r.hasVerb("list") {
		allNamespaces := o
		allNamespaces.scope, allNamespaces.suffix = "", "ForAllNamespaces"
		p.set(versionPath+r.Plural, &Path{Get: allNamespaces.listOperation(r)})
	}
	for i := range r.Subresources {
		s := &r.Subresources[i]
		p.set(scopePath+r.Plural+"/{name}/"+s.Name, o.subresourcePath(s))
	}
}

// set adds a path if it has at least one operation.
func (p *paths) set(path string, v *Path) {
	for _, o := range v.operations() {
		if o != nil {
			v.Parameters = pathParameters(path, o.resourceKind)
			p.byPath[path] = v
		}
	}
}

func (o operations) collectionPath(r *Resource) *Path {
	p := &Path{}
	if r.hasVerb("list") {
		p.Get = o.listOperation(r)
	}
	if r.hasVerb("create") {
		p.Post = o.createOperation()
	}
	if r.hasVerb("deletecollection") {
		p.Delete = o.deleteAllOperation()
	}
	return p
}

func (o operations) objectPath(r *Resource) *Path {
	p := o.readWritePath(r.hasVerb, nil)
	if r.hasVerb("delete") {
		p.Delete = o.deleteOperation()
	}
	return p
}

func (o operations) subresourcePath(s *Subresource) *Path {
	o.kind, o.suffix, o.object = s.Kind, capitalize(s.Name), nil
	if s.Object != nil {
		o.object = o.models.addKind(s.Object, s.Kind)
	}
	p := o.readWritePath(s.hasVerb, s.Options)
	if s.hasVerb("create") {
		p.Post = o.createOperation()
		p.Post.Parameters = append(queryParameters(s.Options), p.Post.Parameters...)
	}
	return p
}

// readWritePath returns the operations that an object and its subresources have in
// common.
func (o operations) readWritePath(hasVerb func(verb string) bool, options any) *Path {
	p := &Path{}
	if hasVerb("get") {
		p.Get = o.getOperation(options)
	}
	if hasVerb("update") {
		p.Put = o.updateOperation()
	}
	if hasVerb("patch") {
		p.Patch = o.patchOperation()
	}
	return p
}
