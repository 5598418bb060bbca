package runtimetest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// An Image is an image on the node.
type Image struct {
	// Name is the tag of the image, such as "registry.example/web:1". It is required.
	Name string
	// ID is generated from Name if it is "".
	ID       string
	Size     uint64
	UID      *int64
	Username string
	Pinned   bool
	// Program is the behavior of a container without a command. If it is zero, it is derived from a
	// tag such as "exit:3" or "sleep:2".
	Program Program
	names   []string
}

// A RemoteImage is an image in a registry.
type RemoteImage struct {
	Image
	// Username and Password are the credentials that a pull requires. If both are "", a pull
	// requires no credentials.
	Username, Password string
	// PullDuration is the duration of a pull.
	PullDuration time.Duration
	// Err is the error of every pull; nil means that pulls succeed.
	Err error
}

// AddImage adds an image to the node.
func (r *Runtime) AddImage(i Image) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.addImageLocked(i)
}

// AddImages adds images with the given names to the node.
func (r *Runtime) AddImages(names ...string) {
	for _, name := range names {
		r.AddImage(Image{Name: name})
	}
}

// AddRemoteImage adds an image that can be pulled.
func (r *Runtime) AddRemoteImage(i RemoteImage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.remoteImages[i.Name] = &i
}

func (r *Runtime) addImageLocked(i Image) *Image {
	if i.ID == "" {
		i.ID = digest(i.Name)
	}
	if presentImage := r.images[i.ID]; presentImage != nil {
		i.names = presentImage.names
	}
	if !slices.Contains(i.names, i.Name) {
		i.names = append(slices.Clone(i.names), i.Name)
	}
	r.images[i.ID] = &i
	return &i
}

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// ref returns the digest of the image with its repository, as in RepoDigests.
func (i *Image) ref() string {
	repository, _, _ := strings.Cut(i.Name, "@")
	if colon := strings.LastIndex(repository, ":"); colon > strings.LastIndex(repository, "/") {
		repository = repository[:colon]
	}
	return repository + "@" + i.ID
}

// program returns the behavior of a container of this image.
func (i *Image) program(c *api.ContainerConfig) Program {
	if command := slices.Concat(c.GetCommand(), c.GetArgs()); len(command) > 0 {
		return ParseProgram(command)
	}
	if i.Program != (Program{}) {
		return i.Program
	}
	name := i.Name[strings.LastIndex(i.Name, "/")+1:]
	return ParseProgram(strings.Split(name, ":"))
}

// findImageLocked returns the image on the node with this name or ID, or nil.
func (r *Runtime) findImageLocked(name string) *Image {
	for _, i := range r.images {
		if i.ID == name || slices.Contains(i.names, name) || i.ref() == name {
			return i
		}
	}
	return nil
}

func (i *Image) message() *api.Image {
	m := &api.Image{
		Id: i.ID, RepoTags: slices.Clone(i.names), RepoDigests: []string{i.ref()}, Size: i.Size, Username: i.Username, Pinned: i.Pinned,
		Spec: &api.ImageSpec{Image: i.ID},
	}
	if i.UID != nil {
		m.Uid = &api.Int64Value{Value: *i.UID}
	}
	return m
}

func (s *service) ImageStatus(_ context.Context, q *api.ImageStatusRequest) (*api.ImageStatusResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if name := q.GetImage().GetImage(); s.options.CRIO && strings.Contains(name, " ") {
		return nil, status.Errorf(codes.Unknown, "cannot parse input: %q: invalid reference format", name)
	}
	i := s.findImageLocked(q.GetImage().GetImage())
	if i == nil {
		return &api.ImageStatusResponse{}, nil
	}
	return &api.ImageStatusResponse{Image: i.message()}, nil
}

func (s *service) ListImages(context.Context, *api.ListImagesRequest) (*api.ListImagesResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	response := &api.ListImagesResponse{}
	for _, i := range s.images {
		response.Images = append(response.Images, i.message())
	}
	return response, nil
}

func (s *service) RemoveImage(_ context.Context, q *api.RemoveImageRequest) (*api.RemoveImageResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.findImageLocked(q.GetImage().GetImage()); i != nil {
		delete(s.images, i.ID)
	}
	return &api.RemoveImageResponse{}, nil
}

func (s *service) ImageFsInfo(context.Context, *api.ImageFsInfoRequest) (*api.ImageFsInfoResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	usage := &api.FilesystemUsage{
		FsId:       &api.FilesystemIdentifier{Mountpoint: "/var/lib/runtimetest"},
		UsedBytes:  &api.UInt64Value{},
		InodesUsed: &api.UInt64Value{Value: uint64(len(s.images))},
	}
	for _, i := range s.images {
		usage.UsedBytes.Value += i.Size
	}
	return &api.ImageFsInfoResponse{ImageFilesystems: []*api.FilesystemUsage{usage}}, nil
}

func (s *service) PullImage(ctx context.Context, q *api.PullImageRequest) (*api.PullImageResponse, error) {
	name := q.GetImage().GetImage()
	s.mu.Lock()
	remoteImage := s.remoteImages[name]
	s.mu.Unlock()
	if strings.Contains(name, " ") {
		return nil, fmt.Errorf("failed to parse image reference %q: invalid reference format", name)
	}
	if remoteImage == nil {
		return nil, status.Errorf(codes.NotFound, "failed to pull and unpack image %q: failed to resolve image: %s: not found", name, name)
	}
	timer := time.NewTimer(remoteImage.PullDuration)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-timer.C:
	}
	if remoteImage.Err != nil {
		return nil, remoteImage.Err
	}
	if remoteImage.Username != "" && (q.GetAuth().GetUsername() != remoteImage.Username || q.GetAuth().GetPassword() != remoteImage.Password) {
		return nil, fmt.Errorf("failed to pull and unpack image %q: failed to resolve image: "+
			"unexpected status from HEAD request to https://registry.example/v2/manifests: 401 Unauthorized", name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return &api.PullImageResponse{ImageRef: s.addImageLocked(remoteImage.Image).ID}, nil
}
