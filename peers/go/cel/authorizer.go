package main

import (
	"context"
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	authorization "k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/library"
)

// authorizer answers from a table: the first row that has nothing else than what is asked.
type authorizer struct {
	User   string   `json:"user"`
	Groups []string `json:"groups,omitempty"`
	// What authorizer.requestResource asks about.
	Request *asked `json:"request,omitempty"`
	Rows    []row  `json:"rows,omitempty"`
}

type asked struct {
	Group       string `json:"group,omitempty"`
	Resource    string `json:"resource"`
	Subresource string `json:"subresource,omitempty"`
	Namespace   string `json:"namespace,omitempty"`
	Name        string `json:"name,omitempty"`
}

type row struct {
	// Attributes by name, see attributes.
	When     map[string]string `json:"when,omitempty"`
	Decision string            `json:"decision"`
	Reason   string            `json:"reason,omitempty"`
	Error    string            `json:"error,omitempty"`
}

func (a *authorizer) bind(variables map[string]any) {
	who := &user.DefaultInfo{Name: a.User, Groups: a.Groups}
	variables["authorizer"] = library.NewAuthorizerVal(who, a)
	if a.Request != nil {
		variables["authorizer.requestResource"] = library.NewResourceAuthorizerVal(who, a, a.Request)
	}
}

func (r *asked) GetName() string        { return r.Name }
func (r *asked) GetNamespace() string   { return r.Namespace }
func (r *asked) GetSubresource() string { return r.Subresource }
func (r *asked) GetResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: r.Group, Resource: r.Resource}
}

func (a *authorizer) Authorize(_ context.Context, what authorization.Attributes) (authorization.Decision, string, error) {
	has := attributes(what)
	for _, row := range a.Rows {
		fits := true
		for name, value := range row.When {
			fits = fits && has[name] == value
		}
		if !fits {
			continue
		}
		var err error
		if row.Error != "" {
			err = errors.New(row.Error)
		}
		switch row.Decision {
		case "allow":
			return authorization.DecisionAllow, row.Reason, err
		case "deny":
			return authorization.DecisionDeny, row.Reason, err
		}
		return authorization.DecisionNoOpinion, row.Reason, err
	}
	return authorization.DecisionNoOpinion, "", nil
}

func attributes(what authorization.Attributes) map[string]string {
	has := map[string]string{
		"user": what.GetUser().GetName(), "groups": strings.Join(what.GetUser().GetGroups(), ","),
		"verb": what.GetVerb(), "path": what.GetPath(), "group": what.GetAPIGroup(), "version": what.GetAPIVersion(),
		"resource": what.GetResource(), "subresource": what.GetSubresource(),
		"namespace": what.GetNamespace(), "name": what.GetName(),
	}
	if requirements, err := what.GetFieldSelector(); err != nil {
		has["fieldSelector"] = "error: " + err.Error()
	} else {
		var texts []string
		for _, requirement := range requirements {
			texts = append(texts, requirement.Field+" "+string(requirement.Operator)+" "+requirement.Value)
		}
		has["fieldSelector"] = strings.Join(texts, ",")
	}
	if requirements, err := what.GetLabelSelector(); err != nil {
		has["labelSelector"] = "error: " + err.Error()
	} else {
		var texts []string
		for _, requirement := range requirements {
			texts = append(texts, requirement.String())
		}
		has["labelSelector"] = strings.Join(texts, ",")
	}
	return has
}
