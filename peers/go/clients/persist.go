package main

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// attempts bounds how often one request is sent again.
const attempts = 500

// persist does something again for as long as connections break under it. An error that `settles` tells that an
// earlier attempt, whose answer was lost, had done it.
func persist(ctx context.Context, settles func(error) bool, do func(context.Context) error) error {
	var err error
	for range attempts {
		err = do(ctx)
		if err == nil || settles(err) {
			return nil
		}
		// What the server answered is final; anything else was the connection.
		if apierrors.ReasonForError(err) != metav1.StatusReasonUnknown || ctx.Err() != nil {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
	return err
}

// never is for what can be done twice.
func never(error) bool { return false }
