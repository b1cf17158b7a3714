/* Calls of a client in C, with what came back, a line for each kind. */
#include <stdio.h>

int beagleCreateInstance(int, int, int, int, int, int, int, int, int, int*, int, long, long, void*);
int beagleSetTipStates(int, int, const int*);
int beagleSetPartials(int, int, const double*);
int beagleSetCategoryWeights(int, int, const double*);
int beagleSetStateFrequencies(int, int, const double*);
int beagleSetTransitionMatrices(int, const int*, const double*, const double*, int);
int beagleGetTransitionMatrix(int, int, double*);
int beagleAddTransitionMatrices(int, const int*, const int*, const int*, int);
typedef struct {
    int number; char *name, *description; long supportFlags, requiredFlags; int returnCode;
    char *implName; long benchedFlags; double benchmarkResult, performanceRatio;
} Benchmarked;
typedef struct { Benchmarked *list; int length; } BenchmarkedList;
BenchmarkedList *beagleGetBenchmarkedResourceList(int, int, int, int, int, int*, int, long, long, int, int, int, long);
int beagleCalculateRootLogLikelihoods(int, const int*, const int*, const int*, const int*, int, double*);
int beagleFinalizeInstance(int);

int main(void) {
    int resource = 0, none = -1, zero = 0, buffer = 3, matrices[2] = {3, 1}, states[5] = {0, 1, 2, 3, 0};
    double values[32], first[16], second[16], partials[20], weights[1] = {1}, frequencies[4] = {0.25, 0.25, 0.25, 0.25};
    double padded[2] = {1, 1}, lnl;
    int instance = beagleCreateInstance(3, 3, 3, 4, 5, 1, 4, 1, 1, &resource, 1, 0, 0, 0);
    for (int k = 0; k < 32; k++) values[k] = k / 100.0;
    for (int k = 0; k < 20; k++) partials[k] = 0.5;
    beagleSetCategoryWeights(instance, 0, weights);
    beagleSetStateFrequencies(instance, 0, frequencies);
    printf("matrices %d", beagleSetTransitionMatrices(instance, matrices, values, padded, 2));
    printf(" %d", beagleGetTransitionMatrix(instance, 3, first));
    printf(" %d", beagleGetTransitionMatrix(instance, 1, second));
    printf(" %g %g %g %g\n", first[0], first[15], second[0], second[15]);
    printf("sum %d", beagleAddTransitionMatrices(instance, matrices, matrices + 1, &zero, 1));
    printf(" %d", beagleGetTransitionMatrix(instance, 0, first));
    printf(" %g %g\n", first[0], first[15]);
    BenchmarkedList *speeds = beagleGetBenchmarkedResourceList(5, 5, 4, 9, 2, &resource, 1, 0, 0, 1, 1, 0, 0);
    printf("speeds %d %d %d %g\n", speeds->length, speeds->list->number, speeds->list->benchmarkResult > 0,
        speeds->list->performanceRatio);
    for (int k = 0; k < 2; k++) {
        beagleSetPartials(instance, 3, partials);
        lnl = 1;
        int code = beagleCalculateRootLogLikelihoods(instance, &buffer, &zero, &zero, &none, 1, &lnl);
        printf("likelihood %d %g\n", code, lnl);
        for (int j = 0; j < 20; j++) partials[j] = 0.0 / 0.0;
    }
    printf("unknown %d %d\n", beagleSetTipStates(99, 0, states), beagleSetTipStates(-1, 0, states));
    printf("closed %d", beagleFinalizeInstance(instance));
    printf(" %d", beagleFinalizeInstance(instance));
    printf(" %d\n", beagleSetTipStates(instance, 0, states));
    return 0;
}
