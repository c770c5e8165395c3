#include "layout/dataset.h"
