package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// resources has one line for each resource and subresource of the lists that the module publishes: group and
// version, name, kind, group and version of the body, scope, singular, short names, categories, verbs, and the
// hash of the stored version.
func resources() (string, error) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes").Output()
	if err != nil {
		return "", err
	}
	names, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "api", "discovery", "api*__v*.json"))
	if err != nil {
		return "", err
	}
	sort.Strings(names)
	var out strings.Builder
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			return "", err
		}
		list := metav1.APIResourceList{}
		if err := json.Unmarshal(content, &list); err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		for _, one := range list.APIResources {
			scope := "Cluster"
			if one.Namespaced {
				scope = "Namespaced"
			}
			fields := []string{
				list.GroupVersion, one.Name, one.Kind, one.Group + "/" + one.Version, scope, one.SingularName,
				strings.Join(one.ShortNames, ","), strings.Join(one.Categories, ","), strings.Join(one.Verbs, ","), one.StorageVersionHash,
			}
			out.WriteString(strings.Join(fields, "\t") + "\n")
		}
	}
	return out.String(), nil
}
